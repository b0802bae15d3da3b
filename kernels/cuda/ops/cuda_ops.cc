#include "kernels/cuda/ops/cuda_ops.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "kernels/check_shapes.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/ops/attention_plan.h"
#include "kernels/cuda/ops/decode_plan.h"
#include "kernels/cuda/ops/kernel_choice.h"
#include "kernels/cuda/ops/upload_ring.h"
#include "kernels/reference/score.h"

namespace pagoda::kernels::cuda {
namespace {

// 64 sequences of 128k tokens in blocks of 16 take 2 MiB of tables.
constexpr std::int64_t kUploadHalfBytes = 8 << 20;

FloatRows RowsOf(const MatrixView& view) { return {view.data, view.stride}; }
ConstFloatRows RowsOf(const ConstMatrixView& view) { return {view.data, view.stride}; }

struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
};

class CudaOps final : public Ops {
 public:
  CudaOps(std::unique_ptr<Device> device, UploadRing uploads, const CudaOpsOptions& options)
      : options_(options), device_(std::move(device)), uploads_(std::move(uploads)) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  Device& device() override { return *device_; }

  void Embed(const EmbedParams& params, Stream stream) override;
  void RmsNorm(const RmsNormParams& params, Stream stream) override {
    CheckShapes(params);
    Normalize(params, RowsOf(params.out), {}, stream);
  }
  void Add(const AddParams& params, Stream stream) override;
  void Matmul(const MatmulParams& params, Stream stream) override;
  void Rope(const RopeParams& params, Stream stream) override;
  void WriteKv(const WriteKvParams& params, Stream stream) override;
  void Attention(const AttentionParams& params, Stream stream) override;
  void SiluMul(const SiluMulParams& params, Stream stream) override;
  void Sample(const SampleParams& params, Stream stream) override;
  void Score(const ScoreParams& params, Stream stream) override;
  void ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks, Stream stream) override;
  void CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies, Stream stream) override;
  void NormMatmul(const NormMatmulParams& params, Stream stream) override;
  void GateUp(const GateUpParams& params, Stream stream) override;
  void RopeAndWriteKv(const RopeAndWriteKvParams& params, Stream stream) override;

 private:
  template <typename Arguments>
  void Launch(KernelId id, const Grid& grid, const Arguments& arguments, Stream stream);
  // Rows by pieces of `columns`; nothing to do without rows.
  template <typename Arguments>
  void LaunchRows(KernelId id, std::int64_t rows, std::int64_t columns, const Arguments& arguments,
                  Stream stream);
  void Normalize(const RmsNormParams& params, FloatRows out, Bf16Rows rounded, Stream stream);
  void Prefill(const AttentionParams& params, Stream stream);
  void Decode(const AttentionParams& params, Stream stream);
  // Memory of at least so many bytes, kept from call to call.
  std::byte* Scratch(DeviceMemory& memory, std::int64_t bytes, Stream stream);
  // Memory for rounded activations, [rows, columns] without gaps.
  Bf16Rows Rounded(std::int64_t rows, std::int64_t columns, Stream stream);
  // The product, from activations that are rounded already.
  void Multiply(const MatmulParams& params, Bf16Rows x, Stream stream);
  RopeArguments TurnArguments(const RopeParams& params, Stream stream);
  void AddStore(const WriteKvParams& params, Stream stream, RopeArguments& arguments);
  void FlushCopies(const KvView& kv, std::span<const BlockCopyArguments> copies, Stream stream);
  void AwaitAll(Stream stream) { (void)device_->Await(device_->Record(stream)); }

  const Capabilities capabilities_ = MakeCapabilities();
  const CudaOpsOptions options_;
  const std::unique_ptr<Device> device_;
  UploadRing uploads_;
  DeviceMemory rounded_, partials_, sampling_;
  AttentionPlan plan_;
  DecodePlan decode_plan_;
  std::vector<AttentionWork> prefill_work_, decode_work_;
  std::vector<BlockCopyArguments> copies_;
  std::vector<SampleRowArguments> sample_rows_;
  std::vector<SampleResult> sample_results_;
};

template <typename Arguments>
void CudaOps::Launch(KernelId id, const Grid& grid, const Arguments& arguments, Stream stream) {
  const KernelInfo& info = InfoOf(id);
  PAGODA_CHECK(info.argument_bytes == sizeof(Arguments));
  device_->Launch({.kernel = static_cast<std::uint16_t>(id),
                   .grid = {static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y),
                            static_cast<std::uint32_t>(grid.z)},
                   .num_threads = info.num_threads,
                   .shared_bytes = info.shared_bytes,
                   .arguments = std::as_bytes(std::span(&arguments, 1))},
                  stream);
}

template <typename Arguments>
void CudaOps::LaunchRows(KernelId id, std::int64_t rows, std::int64_t columns,
                         const Arguments& arguments, Stream stream) {
  if (rows == 0) return;
  constexpr std::int64_t kPerCta = kElementThreads * kElementsPerThread;
  Launch(id, {.x = rows, .y = base::DivUp(columns, kPerCta)}, arguments, stream);
}

Bf16Rows CudaOps::Rounded(std::int64_t rows, std::int64_t columns, Stream stream) {
  std::byte* const memory = Scratch(rounded_, rows * columns * 2, stream);
  return {reinterpret_cast<std::uint16_t*>(memory), columns};
}

std::byte* CudaOps::Scratch(DeviceMemory& memory, std::int64_t bytes, Stream stream) {
  if (bytes > memory.bytes()) {
    AwaitAll(stream);
    auto larger = device_->Allocate(bytes);
    PAGODA_CHECK_MSG(larger.ok(), std::string(larger.status().message()));
    memory = *std::move(larger);
  }
#if defined(PAGODA_TEST_CHECKS)
  // Neither what an earlier call left nor what is beyond this one's bytes is of use to anybody.
  device_->Fill(memory.data(), std::byte{0xff}, memory.bytes(), stream);
#endif
  return memory.data();
}

void CudaOps::Embed(const EmbedParams& params, Stream stream) {
  CheckShapes(params);
  PAGODA_CHECK(params.table->plan.layout == PackLayout::kBf16Rows);
  LaunchRows(KernelId::kEmbed, params.out.rows, params.out.columns,
             EmbedArguments{.table = reinterpret_cast<const std::uint16_t*>(params.table->data),
                            .tokens = uploads_.Put(params.tokens, stream),
                            .out = RowsOf(params.out),
                            .columns = static_cast<std::int32_t>(params.out.columns)},
             stream);
}

void CudaOps::Normalize(const RmsNormParams& params, FloatRows out, Bf16Rows rounded,
                        Stream stream) {
  if (params.in.rows == 0) return;
  Launch(KernelId::kRmsNorm, {.x = base::DivUp<std::int64_t>(params.in.rows, kNormRowsPerCta)},
         RmsNormArguments{.in = RowsOf(params.in),
                          .weight = params.weight.data(),
                          .out = out,
                          .rounded = rounded,
                          .rows = static_cast<std::int32_t>(params.in.rows),
                          .columns = static_cast<std::int32_t>(params.in.columns),
                          .epsilon = params.epsilon},
         stream);
}

void CudaOps::Add(const AddParams& params, Stream stream) {
  CheckShapes(params);
  ConstFloatRows addend = RowsOf(params.addend);
  if (params.addend.rows == 1) addend.stride = 0;
  LaunchRows(KernelId::kAdd, params.inout.rows, params.inout.columns,
             AddArguments{.addend = addend,
                          .inout = RowsOf(params.inout),
                          .columns = static_cast<std::int32_t>(params.inout.columns)},
             stream);
}

void CudaOps::SiluMul(const SiluMulParams& params, Stream stream) {
  CheckShapes(params);
  LaunchRows(KernelId::kSiluMul, params.out.rows, params.out.columns,
             SiluMulArguments{.gate_up = RowsOf(params.gate_up),
                              .out = RowsOf(params.out),
                              .columns = static_cast<std::int32_t>(params.out.columns)},
             stream);
}

void CudaOps::Multiply(const MatmulParams& params, Bf16Rows x, Stream stream) {
  PAGODA_CHECK(params.weight->plan.layout == PackLayout::kBf16Rows);
  if (params.x.rows == 0) return;
  const bool few = params.x.rows <= kFewRows;
  const GemmShape& shape = few ? kGemmFewRows : kGemmManyRows;
  Launch(few ? KernelId::kGemmFewRows : KernelId::kGemmManyRows,
         {.x = base::DivUp<std::int64_t>(params.out.columns, shape.output_tile),
          .y = base::DivUp<std::int64_t>(params.x.rows, shape.row_tile)},
         GemmArguments{.x = x.data,
                       .w = reinterpret_cast<const std::uint16_t*>(params.weight->data),
                       .out = RowsOf(params.out),
                       .x_stride = x.stride,
                       .rows = static_cast<std::int32_t>(params.x.rows),
                       .outputs = static_cast<std::int32_t>(params.out.columns),
                       .inputs = static_cast<std::int32_t>(params.x.columns),
                       .adds = params.output == MatmulOutput::kAdd},
         stream);
}

void CudaOps::Matmul(const MatmulParams& params, Stream stream) {
  CheckShapes(params);
  const Bf16Rows rounded = Rounded(params.x.rows, params.x.columns, stream);
  LaunchRows(KernelId::kRoundRows, params.x.rows, params.x.columns,
             RoundRowsArguments{.in = RowsOf(params.x),
                                .out = rounded,
                                .columns = static_cast<std::int32_t>(params.x.columns)},
             stream);
  Multiply(params, rounded, stream);
}

void CudaOps::NormMatmul(const NormMatmulParams& params, Stream stream) {
  CheckShapes(params.norm);
  CheckShapes(params.matmul);
  PAGODA_CHECK(params.matmul.x.data == params.norm.out.data);
  const Bf16Rows rounded = Rounded(params.norm.in.rows, params.norm.in.columns, stream);
  Normalize(params.norm, {}, rounded, stream);
  Multiply(params.matmul, rounded, stream);
}

void CudaOps::GateUp(const GateUpParams& params, Stream stream) {
  if (params.norm.has_value()) {
    NormMatmul({.norm = *params.norm, .matmul = params.gate_up}, stream);
  } else {
    Matmul(params.gate_up, stream);
  }
  SiluMul({.gate_up = params.gate_up.out, .out = params.out}, stream);
}

RopeArguments CudaOps::TurnArguments(const RopeParams& params, Stream stream) {
  CheckShapes(params);
  RopeArguments arguments;
  arguments.query = RowsOf(params.query);
  arguments.key = RowsOf(params.key);
  arguments.cos = RowsOf(params.cos);
  arguments.sin = RowsOf(params.sin);
  arguments.positions = uploads_.Put(params.positions, stream);
  arguments.num_query_heads = static_cast<std::int32_t>(params.query.columns / params.head_size);
  arguments.num_kv_heads = static_cast<std::int32_t>(params.key.columns / params.head_size);
  arguments.head_size = params.head_size;
  arguments.rotary_size = params.rotary_size;
  arguments.interleaved = params.pairs == RopePairs::kInterleaved;
  return arguments;
}

void CudaOps::AddStore(const WriteKvParams& params, Stream stream, RopeArguments& arguments) {
  CheckShapes(params);
  arguments.value = RowsOf(params.value);
  arguments.slots = uploads_.Put(params.slots, stream);
  arguments.kv = ArgumentsOf(*params.kv);
  arguments.num_kv_heads = params.kv->num_kv_heads;
  arguments.head_size = params.kv->head_size;
  arguments.layer = params.layer;
}

void CudaOps::Rope(const RopeParams& params, Stream stream) {
  const RopeArguments arguments = TurnArguments(params, stream);
  if (params.query.rows == 0) return;
  Launch(KernelId::kRope,
         {.x = params.query.rows, .y = arguments.num_query_heads + arguments.num_kv_heads},
         arguments, stream);
}

void CudaOps::WriteKv(const WriteKvParams& params, Stream stream) {
  RopeArguments arguments;
  AddStore(params, stream, arguments);
  // Nothing is turned, so the key is only read.
  arguments.key = {const_cast<float*>(params.key.data), params.key.stride};
  if (params.key.rows == 0) return;
  Launch(KernelId::kWriteKv, {.x = params.key.rows, .y = 2 * arguments.num_kv_heads}, arguments,
         stream);
}

void CudaOps::RopeAndWriteKv(const RopeAndWriteKvParams& params, Stream stream) {
  PAGODA_CHECK(params.write.key.data == params.rope.key.data);
  PAGODA_CHECK(params.write.kv->head_size == params.rope.head_size);
  RopeArguments arguments = TurnArguments(params.rope, stream);
  AddStore(params.write, stream, arguments);
  if (params.rope.query.rows == 0) return;
  Launch(KernelId::kRopeAndWriteKv,
         {.x = params.rope.query.rows, .y = arguments.num_query_heads + 2 * arguments.num_kv_heads},
         arguments, stream);
}

// Rows that come one to a sequence go to the decode kernel, unless more heads share K and V than it
// has columns for; the bits are the same.
void CudaOps::Attention(const AttentionParams& params, Stream stream) {
  CheckShapes(params);
  const std::int32_t group = params.num_query_heads / params.kv->num_kv_heads;
  const bool splits = options_.splits_decode && group <= kDecodeWideHeads;
  prefill_work_.clear();
  decode_work_.clear();
  for (const AttentionWork& work : params.work) {
    if (work.num_tokens == 0) continue;
    (splits && work.num_tokens == 1 ? decode_work_ : prefill_work_).push_back(work);
  }
  AttentionParams part = params;
  part.work = prefill_work_;
  if (!part.work.empty()) Prefill(part, stream);
  part.work = decode_work_;
  if (!part.work.empty()) Decode(part, stream);
}

void CudaOps::Prefill(const AttentionParams& params, Stream stream) {
  const KvView& kv = *params.kv;
  const KernelId id = AttentionKernelOf(kv.head_size);
  const std::int32_t group = params.num_query_heads / kv.num_kv_heads;
  plan_.Make(params.work, kv.block_size, group, AttentionShapeOf(kv.head_size).rows);
  Launch(id, {.x = static_cast<std::int64_t>(plan_.tiles.size()), .y = kv.num_kv_heads},
         AttentionArguments{
             .query = RowsOf(params.query),
             .out = RowsOf(params.out),
             .kv = ArgumentsOf(kv),
             .tiles = uploads_.Put(std::span<const AttentionTile>(plan_.tiles), stream),
             .items = uploads_.Put(std::span<const AttentionItem>(plan_.items), stream),
             .block_table = uploads_.Put(std::span<const std::uint32_t>(plan_.block_table), stream),
             .layer = params.layer,
             .group = group,
             .scale = params.scale},
         stream);
}

void CudaOps::Decode(const AttentionParams& params, Stream stream) {
  const KvView& kv = *params.kv;
  const std::int32_t group = params.num_query_heads / kv.num_kv_heads;
  DecodePlan& plan = decode_plan_;
  plan.Make(params.work, kv.block_size, std::max(1, options_.decode_ctas / kv.num_kv_heads));
  const std::int64_t num_sums =
      static_cast<std::int64_t>(plan.slices.size()) * params.num_query_heads;
  auto* const partial = reinterpret_cast<float*>(Scratch(
      partials_, num_sums * (kv.head_size + 2) * static_cast<std::int64_t>(sizeof(float)), stream));
  float* const partial_sums = partial + num_sums * kv.head_size;
  Launch(DecodeKernelOf(kv.head_size, group > kDecodeHeads),
         {.x = static_cast<std::int64_t>(plan.shares.size()), .y = kv.num_kv_heads},
         DecodeArguments{
             .query = RowsOf(params.query),
             .kv = ArgumentsOf(kv),
             .shares = uploads_.Put(std::span<const DecodeShare>(plan.shares), stream),
             .slices = uploads_.Put(std::span<const DecodeSlice>(plan.slices), stream),
             .block_table = uploads_.Put(std::span<const std::uint32_t>(plan.block_table), stream),
             .partial_out = partial,
             .partial_sums = partial_sums,
             .layer = params.layer,
             .group = group,
             .num_query_heads = params.num_query_heads,
             .scale = params.scale},
         stream);
  Launch(KernelId::kMergeDecode,
         {.x = static_cast<std::int64_t>(plan.rows.size()), .y = params.num_query_heads},
         MergeArguments{.out = RowsOf(params.out),
                        .rows = uploads_.Put(std::span<const DecodeRow>(plan.rows), stream),
                        .partial_out = partial,
                        .partial_sums = partial_sums,
                        .num_query_heads = params.num_query_heads,
                        .head_size = kv.head_size},
         stream);
}

// The logits are the host's, changed by its rules, so they go up; the outcomes come back before
// this returns.
void CudaOps::Sample(const SampleParams& params, Stream stream) {
  CheckShapes(params);
  if (params.rows.empty()) return;
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  std::int64_t num_logits = 0;
  for (const SampleRow& row : params.rows) num_logits += std::ssize(row.logits);
  const auto result_bytes = static_cast<std::int64_t>(params.rows.size() * sizeof(SampleResult));
  std::byte* const memory = Scratch(sampling_, 2 * num_logits * kFloat + result_bytes, stream);
  auto* const results = reinterpret_cast<SampleResult*>(memory);
  auto* logits = reinterpret_cast<float*>(memory + result_bytes);
  sample_rows_.clear();
  for (const SampleRow& row : params.rows) {
    const std::int64_t count = std::ssize(row.logits);
    device_->Copy(reinterpret_cast<std::byte*>(logits),
                  reinterpret_cast<const std::byte*>(row.logits.data()), count * kFloat, stream);
    sample_rows_.push_back({.logits = logits,
                            .weights = logits + num_logits,
                            .seed = row.seed,
                            .num_tokens = static_cast<std::int32_t>(count),
                            .temperature = row.temperature,
                            .top_p = row.top_p,
                            .min_p = row.min_p,
                            .top_k = row.top_k,
                            .position = row.position,
                            .choice = row.choice});
    logits += count;
  }
  Launch(KernelId::kSample, {.x = std::ssize(params.rows)},
         SampleArguments{
             .rows = uploads_.Put(std::span<const SampleRowArguments>(sample_rows_), stream),
             .results = results},
         stream);
  sample_results_.assign(params.rows.size(), {});
  device_->Copy(reinterpret_cast<std::byte*>(sample_results_.data()), memory, result_bytes, stream);
  AwaitAll(stream);
  for (std::size_t i = 0; i < params.rows.size(); ++i) {
    params.outcomes[i] = {.token = sample_results_[i].token,
                          .finite = sample_results_[i].finite != 0};
  }
}

void CudaOps::Score(const ScoreParams& params, Stream stream) {
  CheckShapes(params);
  AwaitAll(stream);
  for (std::size_t i = 0; i < params.rows.size(); ++i) {
    params.outcomes[i] = reference::Score(params.rows[i]);
  }
}

BlockArguments BlocksOf(const KvView& kv) {
  BlockArguments arguments;
  arguments.kv = ArgumentsOf(kv);
  arguments.num_kv_heads = kv.num_kv_heads;
  arguments.head_bytes = kv.head_size * 2;
  return arguments;
}

void CudaOps::ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks, Stream stream) {
  CheckShapes(kv, blocks);
  if (blocks.empty()) return;
  BlockArguments arguments = BlocksOf(kv);
  arguments.blocks = uploads_.Put(blocks, stream);
  Launch(KernelId::kZeroBlocks,
         {.x = static_cast<std::int64_t>(blocks.size()), .y = kv.num_layers, .z = 2}, arguments,
         stream);
}

void CudaOps::FlushCopies(const KvView& kv, std::span<const BlockCopyArguments> copies,
                          Stream stream) {
  if (copies.empty()) return;
  BlockArguments arguments = BlocksOf(kv);
  arguments.copies = uploads_.Put(copies, stream);
  Launch(KernelId::kCopyBlocks,
         {.x = static_cast<std::int64_t>(copies.size()), .y = kv.num_layers, .z = 2}, arguments,
         stream);
}

// Copies of one launch happen in any order, so one that reads or writes what an earlier one wrote,
// or writes what it read, begins a new launch.
void CudaOps::CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies, Stream stream) {
  CheckShapes(kv, copies);
  copies_.clear();
  for (const BlockCopy& copy : copies) {
    if (copy.num_slots == 0) continue;
    const bool waits =
        std::any_of(copies_.begin(), copies_.end(), [&copy](const BlockCopyArguments& earlier) {
          return earlier.target == copy.source || earlier.target == copy.target ||
                 earlier.source == copy.target;
        });
    if (waits) {
      FlushCopies(kv, copies_, stream);
      copies_.clear();
    }
    copies_.push_back({copy.source, copy.target, copy.num_slots});
  }
  FlushCopies(kv, copies_, stream);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ops>> MakeCudaOps(std::unique_ptr<Device> device,
                                                 const CudaOpsOptions& options) {
  auto uploads = UploadRing::Create(*device, kUploadHalfBytes);
  if (!uploads.ok()) return uploads.status();
  return std::make_unique<CudaOps>(std::move(device), *std::move(uploads), options);
}

}  // namespace pagoda::kernels::cuda
