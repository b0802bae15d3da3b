#include "kernels/cpu/cpu_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/strings.h"
#include "kernels/check_shapes.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/block_moves.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/sampling.h"
#include "kernels/cpu/scoring.h"
#include "kernels/cpu/worker_pool.h"
#include "kernels/dequantize.h"
#include "kernels/kv_support.h"

namespace pagoda::kernels::cpu {
namespace {

// Rows that one thread handles faster than it would take to share them out, in elements.
constexpr std::int64_t kElementsPerTask = 8'192;

}  // namespace

Capabilities MakeCapabilities() {
  KvSupport kv = KvSupportOf(PackLayout::kColumnPanels);
  PAGODA_CHECK(std::ranges::max(kv.head_sizes) <= kMaxHeadSize);
  Capabilities capabilities;
  capabilities.backend = std::move(kv.backend);
  capabilities.numerics_id = "fma32-1";
  capabilities.kv_types = std::move(kv.types);
  capabilities.head_sizes = std::move(kv.head_sizes);
  capabilities.block_sizes = std::move(kv.block_sizes);
  for (const ElementType format : kAllElementTypes) {
    capabilities.weights.push_back({format, ActivationType::kF32});
    if (IsQuantized(format)) capabilities.weights.push_back({format, ActivationType::kInt8});
    capabilities.embeddings.push_back(format);
  }
  capabilities.pack_layout = PackLayout::kColumnPanels;
  capabilities.key_order = KeyOrder::kDimPairMajor;
  return capabilities;
}

namespace {

class CpuOps : public Ops {
 public:
  CpuOps(const CpuOpsOptions& options, InstructionClass instruction_class)
      : capabilities_(MakeCapabilities()),
        kernels_(KernelsOf(instruction_class)),
        device_(MakeHostDevice()),
        pool_({.num_threads = options.num_threads, .pin = options.pin_threads}),
        matmul_(kernels_, pool_, *device_),
        attention_(kernels_, pool_, *device_),
        samplers_(static_cast<std::size_t>(options.num_threads)),
        scorers_(static_cast<std::size_t>(options.num_threads)) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  Device& device() override { return *device_; }

  void Embed(const EmbedParams& params, Stream stream) override;
  void RmsNorm(const RmsNormParams& params, Stream stream) override;
  void Add(const AddParams& params, Stream stream) override;
  void Matmul(const MatmulParams& params, Stream /*stream*/) override {
    matmul_.Run(params, nullptr);
  }
  void Rope(const RopeParams& params, Stream stream) override;
  void WriteKv(const WriteKvParams& params, Stream stream) override;
  void Attention(const AttentionParams& params, Stream /*stream*/) override {
    attention_.Run(params);
  }
  void SiluMul(const SiluMulParams& params, Stream stream) override;
  void Sample(const SampleParams& params, Stream stream) override;
  void Score(const ScoreParams& params, Stream stream) override;
  void ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks,
                  Stream /*stream*/) override {
    CheckShapes(kv, blocks);
    for (const std::uint32_t block : blocks) ZeroBlock(kv, block);
  }
  void CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies, Stream /*stream*/) override {
    CheckShapes(kv, copies);
    for (const BlockCopy& copy : copies) CopySlots(kv, copy);
  }

  void NormMatmul(const NormMatmulParams& params, Stream /*stream*/) override {
    matmul_.Run(params.matmul, &params.norm);
  }
  void GateUp(const GateUpParams& params, Stream /*stream*/) override {
    matmul_.RunGateUp(params.gate_up, params.norm.has_value() ? &*params.norm : nullptr,
                      params.out);
  }
  void RopeAndWriteKv(const RopeAndWriteKvParams& params, Stream stream) override;

 private:
  // Calls use(row) for every row, `columns` elements of work each.
  template <typename Use>
  void ForRows(std::int64_t num_rows, std::int64_t columns, const Use& use);
  void RotateRow(const RopeParams& params, std::int64_t row) const;
  void StoreRow(const WriteKvParams& params, std::int64_t row) const;

  const Capabilities capabilities_;
  const KernelTable kernels_;
  const std::unique_ptr<Device> device_;
  WorkerPool pool_;
  cpu::Matmul matmul_;
  cpu::Attention attention_;
  std::vector<RowSampler> samplers_;  // one per thread
  std::vector<RowScorer> scorers_;    // one per thread
};

template <typename Use>
void CpuOps::ForRows(std::int64_t num_rows, std::int64_t columns, const Use& use) {
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / columns);
  pool_.Run(base::DivUp(num_rows, rows_per_task), [&](std::int64_t task, int) {
    const std::int64_t last = std::min(num_rows, (task + 1) * rows_per_task);
    for (std::int64_t row = task * rows_per_task; row < last; ++row) use(row);
  });
}

void CpuOps::Embed(const EmbedParams& params, Stream /*stream*/) {
  CheckShapes(params);
  const PackPlan& plan = params.table->plan;
  const PackedPart& part = plan.parts[0];
  ForRows(params.out.rows, params.out.columns, [&](std::int64_t row) {
    const base::TokenId token = params.tokens[static_cast<std::size_t>(row)];
    DequantizeRow(part.format, params.table->Part(0) + token * part.unit_bytes,
                  {params.out.Row(row), static_cast<std::size_t>(plan.num_inputs)});
  });
}

void CpuOps::RmsNorm(const RmsNormParams& params, Stream /*stream*/) {
  CheckShapes(params);
  ForRows(params.in.rows, params.in.columns, [&](std::int64_t row) {
    kernels_.norm_row(params.in.Row(row), params.in.columns, {params.weight.data(), params.epsilon},
                      params.out.Row(row));
  });
}

void CpuOps::Add(const AddParams& params, Stream /*stream*/) {
  CheckShapes(params);
  ForRows(params.inout.rows, params.inout.columns, [&](std::int64_t row) {
    const float* const addend = params.addend.Row(params.addend.rows == 1 ? 0 : row);
    kernels_.add_row(addend, params.inout.columns, params.inout.Row(row));
  });
}

void CpuOps::SiluMul(const SiluMulParams& params, Stream /*stream*/) {
  CheckShapes(params);
  ForRows(params.out.rows, params.out.columns, [&](std::int64_t row) {
    const float* gate = params.gate_up.Row(row);
    kernels_.silu_mul_row(gate, gate + params.out.columns, params.out.columns, params.out.Row(row));
  });
}

void CpuOps::Sample(const SampleParams& params, Stream /*stream*/) {
  CheckShapes(params);
  pool_.Run(static_cast<std::int64_t>(params.rows.size()), [&](std::int64_t row, int thread) {
    const auto i = static_cast<std::size_t>(row);
    params.outcomes[i] =
        samplers_[static_cast<std::size_t>(thread)].Sample(params.rows[i], kernels_);
  });
}

void CpuOps::Score(const ScoreParams& params, Stream /*stream*/) {
  CheckShapes(params);
  pool_.Run(static_cast<std::int64_t>(params.rows.size()), [&](std::int64_t row, int thread) {
    const auto i = static_cast<std::size_t>(row);
    params.outcomes[i] = scorers_[static_cast<std::size_t>(thread)].Score(params.rows[i], kernels_);
  });
}

void CpuOps::RotateRow(const RopeParams& params, std::int64_t row) const {
  const std::int64_t position = params.positions[static_cast<std::size_t>(row)];
  RopeJob job;
  job.head_size = params.head_size;
  job.rotary_size = params.rotary_size;
  job.interleaved = params.pairs == RopePairs::kInterleaved;
  job.cos = params.cos.Row(position);
  job.sin = params.sin.Row(position);
  for (const MatrixView& side : {params.query, params.key}) {
    job.heads = side.Row(row);
    job.num_heads = side.columns / params.head_size;
    kernels_.rotate(job);
  }
}

void CpuOps::StoreRow(const WriteKvParams& params, std::int64_t row) const {
  const KvView& kv = *params.kv;
  const std::int64_t slot = params.slots[static_cast<std::size_t>(row)];
  if (slot < 0) return;
  const std::int64_t block = slot / kv.block_size;
  const std::int64_t token = slot % kv.block_size;
  for (std::int64_t head = 0; head < kv.num_kv_heads; ++head) {
    for (const bool is_key : {true, false}) {
      const KvPlane& plane = is_key ? kv.key : kv.value;
      const ConstMatrixView& source = is_key ? params.key : params.value;
      kernels_.store_kv(
          {.source = source.Row(row) + head * kv.head_size,
           .target = plane.Head(block, params.layer, head) + token * plane.token_stride,
           .pair_stride = plane.pair_stride,
           .head_size = kv.head_size,
           .type = kv.type});
    }
  }
}

void CpuOps::Rope(const RopeParams& params, Stream /*stream*/) {
  CheckShapes(params);
  ForRows(params.query.rows, params.query.columns,
          [&](std::int64_t row) { RotateRow(params, row); });
}

void CpuOps::WriteKv(const WriteKvParams& params, Stream /*stream*/) {
  CheckShapes(params);
  ForRows(params.key.rows, params.key.columns, [&](std::int64_t row) { StoreRow(params, row); });
}

void CpuOps::RopeAndWriteKv(const RopeAndWriteKvParams& params, Stream /*stream*/) {
  CheckShapes(params.rope);
  CheckShapes(params.write);
  PAGODA_CHECK(params.write.key.data == params.rope.key.data);
  ForRows(params.rope.query.rows, params.rope.query.columns, [&](std::int64_t row) {
    RotateRow(params.rope, row);
    StoreRow(params.write, row);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ops>> MakeCpuOps(const CpuOpsOptions& options) {
  if (options.num_threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cpu backend needs at least 1 thread, not ", options.num_threads));
  }
  const std::vector<InstructionClass> available = AvailableInstructionClasses();
  const InstructionClass wanted = options.instruction_class.value_or(available.back());
  if (std::find(available.begin(), available.end(), wanted) == available.end()) {
    return absl::InvalidArgumentError(absl::StrCat("this machine has no ",
                                                   base::ToAbsl(Name(wanted)), "; its best is ",
                                                   base::ToAbsl(Name(available.back()))));
  }
  return std::make_unique<CpuOps>(options, wanted);
}

}  // namespace pagoda::kernels::cpu
