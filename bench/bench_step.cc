// Whole steps of a model of SmolLM2-135M's shape (Q4_1 weights, Q8_0 head, bf16 KV) through the CPU
// ops: prefill and decode, without sampling and text. Weights are arbitrary bytes: only time is
// looked at.
#include <cstdio>
#include <memory>
#include <vector>

#include "base/bits.h"
#include "benchmark/benchmark.h"
#include "kernels/cpu/cpu_ops.h"

namespace pagoda::bench {
namespace {

using kernels::ActivationType;
using kernels::ElementType;
using kernels::MatrixView;
using kernels::Ops;
using kernels::WeightRole;

constexpr std::int32_t kLayers = 30;
constexpr std::int64_t kHidden = 576;
constexpr std::int64_t kKvColumns = 192;
constexpr std::int64_t kInner = 1'536;
constexpr std::int64_t kVocabulary = 49'152;
constexpr std::int32_t kMaxRows = 512;
constexpr std::int32_t kMaxPosition = 2'048;
constexpr std::int32_t kBlockSize = 16;

struct Weight {
  kernels::PackedWeight packed;
  kernels::DeviceMemory memory;
};

class StepModel {
 public:
  explicit StepModel(int num_threads)
      : ops_(*kernels::cpu::MakeCpuOps({.num_threads = num_threads, .instruction_class = {}})) {
    using enum WeightRole;
    for (std::int32_t i = 0; i < kLayers; ++i) {
      layers_.push_back(
          {MakeWeight(ElementType::kQ4_1, kQkv, {kHidden, kKvColumns, kKvColumns}, kHidden),
           MakeWeight(ElementType::kQ4_1, kAttentionOutput, {kHidden}, kHidden),
           MakeWeight(ElementType::kQ4_1, kGateUp, {kInner, kInner}, kHidden),
           MakeWeight(ElementType::kQ4_1, kDown, {kHidden}, kInner)});
    }
    head_ = MakeWeight(ElementType::kQ8_0, kLmHead, {kVocabulary}, kHidden);
    for (auto* buffer : {&x_, &normed_, &attended_}) buffer->assign(kMaxRows * kHidden, 0.1f);
    qkv_.assign(kMaxRows * (kHidden + 2 * kKvColumns), 0.1f);
    gate_up_.assign(kMaxRows * 2 * kInner, 0.0f);
    inner_.assign(kMaxRows * kInner, 0.0f);
    logits_.assign(64 * kVocabulary, 0.0f);
    rope_.assign(kMaxPosition * 32, 0.5f);
    AllocateKv(64 * 16 + 1);
  }

  // num_sequences sequences add num_tokens tokens each behind `first_position` ones.
  void Step(std::int32_t num_sequences, std::int32_t num_tokens, std::int32_t first_position) {
    rows_ = num_sequences * num_tokens;
    work_.clear();
    slots_.clear();
    positions_.clear();
    for (std::int32_t s = 0; s < num_sequences; ++s) {
      const std::size_t first_block = static_cast<std::size_t>(s) * blocks_per_sequence_;
      const std::span table(&blocks_[first_block], blocks_per_sequence_);
      work_.push_back({s * num_tokens, num_tokens, first_position, table});
      for (std::int32_t t = first_position; t < first_position + num_tokens; ++t) {
        positions_.push_back(t);
        slots_.push_back(table[static_cast<std::size_t>(t / kBlockSize)] *
                             std::int64_t{kBlockSize} +
                         t % kBlockSize);
      }
    }
    for (std::int32_t i = 0; i < kLayers; ++i) RunLayer(i);
    // One row of logits a sequence.
    ops_->NormMatmul({.norm = Norm(num_sequences),
                      .matmul = Product(View(normed_, kHidden, num_sequences), head_,
                                        View(logits_, kVocabulary, num_sequences))},
                     {});
  }

  void UseContext(std::size_t tokens) { blocks_per_sequence_ = (tokens + 15) / 16; }

 private:
  struct Layer {
    Weight qkv, output, gate_up, down;
  };

  Weight MakeWeight(ElementType format, WeightRole role, std::vector<std::int64_t> outputs,
                    std::int64_t num_inputs) {
    std::vector<kernels::PartShape> parts;
    for (const std::int64_t n : outputs) parts.push_back({format, n, num_inputs});
    Weight weight;
    weight.packed.plan = *kernels::PlanPack(
        parts, role, {}, {kernels::PackLayout::kColumnPanels, ActivationType::kInt8});
    weight.memory = *ops_->device().Allocate(weight.packed.plan.bytes);
    ops_->device().Fill(weight.memory.data(), std::byte{0x11}, weight.packed.plan.bytes, {});
    weight.packed.data = weight.memory.data();
    return weight;
  }

  void AllocateKv(std::int32_t num_blocks) {
    const base::KvGroup group = {.num_layers = kLayers,
                                 .window_tokens = std::nullopt,
                                 .num_kv_heads = 3,
                                 .head_size = 64,
                                 .type = base::KvType::kBf16};
    kv_memory_ = *ops_->device().Allocate(group.BytesPerToken() * kBlockSize * num_blocks);
    kv_ = kernels::BlockMajorKvView(kv_memory_.data(), group, kBlockSize, num_blocks,
                                    ops_->capabilities().key_order);
    for (std::int32_t b = 1; b < num_blocks; ++b) blocks_.push_back(static_cast<std::uint32_t>(b));
  }

  MatrixView View(std::vector<float>& buffer, std::int64_t columns, std::int64_t rows) {
    return {buffer.data(), rows, columns, columns};
  }
  kernels::RmsNormParams Norm(std::int64_t rows) {
    return {.in = View(x_, kHidden, rows), .weight = norm_, .out = View(normed_, kHidden, rows)};
  }
  static kernels::MatmulParams Product(MatrixView x, const Weight& weight, MatrixView out) {
    kernels::MatmulParams params;
    params.x = x;
    params.weight = &weight.packed;
    params.out = out;
    return params;
  }

  void RunLayer(std::int32_t i) {
    const Layer& layer = layers_[static_cast<std::size_t>(i)];
    const MatrixView x = View(x_, kHidden, rows_);
    const MatrixView normed = View(normed_, kHidden, rows_);
    const MatrixView qkv = View(qkv_, kHidden + 2 * kKvColumns, rows_);
    const MatrixView attended = View(attended_, kHidden, rows_);
    const MatrixView inner = View(inner_, kInner, rows_);
    const MatrixView table = {rope_.data(), kMaxPosition, 32, 32};
    ops_->NormMatmul({.norm = Norm(rows_), .matmul = Product(normed, layer.qkv, qkv)}, {});
    const MatrixView query = qkv.Columns(0, kHidden);
    const MatrixView key = qkv.Columns(kHidden, kKvColumns);
    ops_->RopeAndWriteKv({.rope = {.query = query,
                                   .key = key,
                                   .head_size = 64,
                                   .rotary_size = 64,
                                   .cos = table,
                                   .sin = table,
                                   .positions = positions_},
                          .write = {.key = key,
                                    .value = qkv.Columns(kHidden + kKvColumns, kKvColumns),
                                    .kv = &kv_,
                                    .layer = i,
                                    .slots = slots_}},
                         {});
    ops_->Attention({.query = query,
                     .out = attended,
                     .kv = &kv_,
                     .layer = i,
                     .num_query_heads = 9,
                     .scale = 0.125f,
                     .work = work_},
                    {});
    kernels::MatmulParams output = Product(attended, layer.output, x);
    output.output = kernels::MatmulOutput::kAdd;
    ops_->Matmul(output, {});
    ops_->GateUp({.norm = Norm(rows_),
                  .gate_up = Product(normed, layer.gate_up, View(gate_up_, 2 * kInner, rows_)),
                  .out = inner},
                 {});
    kernels::MatmulParams down = Product(inner, layer.down, x);
    down.output = kernels::MatmulOutput::kAdd;
    ops_->Matmul(down, {});
  }

  std::unique_ptr<Ops> ops_;
  std::vector<Layer> layers_;
  Weight head_;
  kernels::DeviceMemory kv_memory_;
  kernels::KvView kv_;
  std::vector<std::uint32_t> blocks_;
  std::size_t blocks_per_sequence_ = 1;
  std::int64_t rows_ = 0;
  const std::vector<float> norm_ = std::vector<float>(kHidden, 1.0f);
  std::vector<float> x_, normed_, attended_, qkv_, gate_up_, inner_, logits_, rope_;
  std::vector<kernels::AttentionWork> work_;
  std::vector<std::int64_t> slots_;
  std::vector<std::int32_t> positions_;
};

void BenchStep(benchmark::State& state) {
  const auto num_sequences = static_cast<std::int32_t>(state.range(0));
  const auto num_tokens = static_cast<std::int32_t>(state.range(1));
  const auto first_position = static_cast<std::int32_t>(state.range(2));
  StepModel model(static_cast<int>(state.range(3)));
  model.UseContext(static_cast<std::size_t>(first_position + num_tokens));
  for (auto _ : state) model.Step(num_sequences, num_tokens, first_position);
  state.counters["tokens"] =
      benchmark::Counter(static_cast<double>(state.iterations() * num_sequences * num_tokens),
                         benchmark::Counter::kIsRate);
}

BENCHMARK(BenchStep)
    ->ArgNames({"sequences", "tokens", "behind", "threads"})
    ->ArgsProduct({{1, 8, 32}, {1}, {160}, {1, 2}})
    ->ArgsProduct({{1}, {512}, {0}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(1.0);

}  // namespace
}  // namespace pagoda::bench

BENCHMARK_MAIN();
