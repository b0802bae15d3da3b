// Kernels of the CPU backend beside the limits of this machine, measured in the same process.
// `of_limit` is the time that the limit alone would take over the time taken: the slower of reading
// every weight and KV byte once from memory and doing every product at the instruction's full rate.
//   bench_kernels --benchmark_filter='matmul.*threads:1$'
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/bits.h"
#include "bench/machine_limits.h"
#include "benchmark/benchmark.h"
#include "kernels/cpu/cpu_ops.h"

namespace pagoda::bench {
namespace {

constexpr std::int64_t kBeyondCaches = std::int64_t{96} << 20;

struct Backend {
  std::unique_ptr<kernels::Ops> ops;
  MachineLimits limits;
};

Backend& BackendOf(int num_threads) {
  static std::vector<Backend> backends(3);
  Backend& backend = backends[static_cast<std::size_t>(num_threads)];
  if (backend.ops == nullptr) {
    backend.ops = *kernels::cpu::MakeCpuOps({.num_threads = num_threads, .instruction_class = {}});
    backend.limits = MeasureLimits(num_threads);
    std::printf("%d threads: read %.1f GB/s, fp32 fma %.1f G/s, byte products %.1f G/s\n",
                num_threads, backend.limits.read_bytes_per_second * 1e-9,
                backend.limits.fma_per_second * 1e-9,
                backend.limits.int8_products_per_second * 1e-9);
  }
  return backend;
}

void Report(benchmark::State& state, double seconds_at_limit) {
  state.counters["of_limit"] = benchmark::Counter(
      seconds_at_limit * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

struct MatmulShape {
  const char* name;
  std::int64_t num_outputs;
  std::int64_t num_inputs;
};

// As many copies of one weight as do not fit in any cache together.
class Weights {
 public:
  Weights(kernels::ElementType format, const MatmulShape& shape,
          kernels::ActivationType activation) {
    const kernels::PartShape part = {format, shape.num_outputs, shape.num_inputs};
    plan_ = *kernels::PlanPack({&part, 1}, kernels::WeightRole::kDown, {},
                               {kernels::PackLayout::kColumnPanels, activation});
    num_copies_ = base::DivUp(kBeyondCaches, plan_.bytes);
    bytes_.assign(static_cast<std::size_t>(plan_.bytes * num_copies_), std::byte{0x11});
  }
  kernels::PackedWeight Copy(std::int64_t i) const {
    return {plan_, bytes_.data() + i % num_copies_ * plan_.bytes};
  }
  std::int64_t bytes() const { return plan_.bytes; }

 private:
  kernels::PackPlan plan_;
  std::int64_t num_copies_ = 0;
  std::vector<std::byte> bytes_;
};

void BenchMatmul(benchmark::State& state, kernels::ElementType format,
                 kernels::ActivationType activation, MatmulShape shape) {
  const std::int64_t num_rows = state.range(0);
  Backend& backend = BackendOf(static_cast<int>(state.range(1)));
  const Weights weights(format, shape, activation);
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  std::vector<float> x(size(num_rows * shape.num_inputs), 0.5f);
  std::vector<float> out(size(num_rows * shape.num_outputs));
  std::int64_t i = 0;
  for (auto _ : state) {
    const kernels::PackedWeight weight = weights.Copy(i++);
    kernels::MatmulParams params;
    params.x = {x.data(), num_rows, shape.num_inputs, shape.num_inputs};
    params.weight = &weight;
    params.out = {out.data(), num_rows, shape.num_outputs, shape.num_outputs};
    backend.ops->Matmul(params, {});
  }
  const double products = static_cast<double>(num_rows * shape.num_inputs * shape.num_outputs);
  const bool int8 = kernels::ActivationFor(format, activation) == kernels::ActivationType::kInt8;
  Report(state,
         std::max(static_cast<double>(weights.bytes()) / backend.limits.read_bytes_per_second,
                  products / (int8 ? backend.limits.int8_products_per_second
                                   : backend.limits.fma_per_second)));
  state.counters["products"] = benchmark::Counter(
      products * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// SmolLM2's heads: 9 query heads over 3 KV heads of 64.
void BenchAttention(benchmark::State& state) {
  const auto num_tokens = static_cast<std::int32_t>(state.range(0));
  const auto context = static_cast<std::int32_t>(state.range(1));
  Backend& backend = BackendOf(static_cast<int>(state.range(2)));
  const base::KvGroup group = {.num_layers = 30,
                               .window_tokens = std::nullopt,
                               .num_kv_heads = 3,
                               .head_size = 64,
                               .type = base::KvType::kBf16};
  const std::int32_t num_blocks = base::DivUp(context, 16) + 1;
  std::vector<std::uint64_t> pool(
      static_cast<std::size_t>(group.BytesPerToken() * 16 * num_blocks / 8));
  const kernels::KvView kv =
      kernels::BlockMajorKvView(reinterpret_cast<std::byte*>(pool.data()), group, 16, num_blocks,
                                kernels::KeyOrder::kDimPairMajor);
  std::vector<std::uint32_t> blocks;
  for (std::int32_t b = 1; b < num_blocks; ++b) blocks.push_back(static_cast<std::uint32_t>(b));
  std::vector<float> query(static_cast<std::size_t>(num_tokens) * 576, 0.5f);
  std::vector<float> out(query.size());
  const kernels::AttentionWork work = {0, num_tokens, context - num_tokens, blocks};
  std::int32_t layer = 0;
  for (auto _ : state) {
    backend.ops->Attention({.query = {query.data(), num_tokens, 576, 576},
                            .out = {out.data(), num_tokens, 576, 576},
                            .kv = &kv,
                            .layer = layer,
                            .num_query_heads = 9,
                            .scale = 0.125f,
                            .work = {&work, 1}},
                           {});
    layer = (layer + 1) % 30;
  }
  const double seen = static_cast<double>(num_tokens) * (context - (num_tokens - 1) / 2.0);
  Report(state, std::max(context * 768.0 / backend.limits.read_bytes_per_second,
                         seen * 9 * 128 / backend.limits.fma_per_second));
}

void RegisterMatmuls() {
  using kernels::ActivationType;
  using kernels::ElementType;
  struct Case {
    ElementType format;
    ActivationType activation;
    MatmulShape shape;
  };
  const MatmulShape qkv = {"qkv", 960, 576};
  const MatmulShape gate_up = {"gate_up", 3'072, 576};
  const MatmulShape down = {"down", 576, 1'536};
  const MatmulShape head = {"head", 49'152, 576};
  for (const Case& c : {Case{ElementType::kQ4_1, ActivationType::kInt8, qkv},
                        Case{ElementType::kQ4_1, ActivationType::kInt8, gate_up},
                        Case{ElementType::kQ4_0, ActivationType::kInt8, gate_up},
                        Case{ElementType::kQ5_0, ActivationType::kInt8, gate_up},
                        Case{ElementType::kQ5_1, ActivationType::kInt8, gate_up},
                        Case{ElementType::kQ8_0, ActivationType::kInt8, gate_up},
                        // The K types take rows of whole 256.
                        Case{ElementType::kQ4_1, ActivationType::kInt8, down},
                        Case{ElementType::kQ4_K, ActivationType::kInt8, down},
                        Case{ElementType::kQ5_K, ActivationType::kInt8, down},
                        Case{ElementType::kQ6_K, ActivationType::kInt8, down},
                        Case{ElementType::kQ8_0, ActivationType::kInt8, head},
                        Case{ElementType::kQ4_1, ActivationType::kF32, gate_up},
                        Case{ElementType::kBf16, ActivationType::kF32, gate_up},
                        Case{ElementType::kF32, ActivationType::kF32, gate_up}}) {
    const std::string name = std::string("matmul/") + kernels::Name(c.format) + "/" +
                             kernels::Name(c.activation) + "/" + c.shape.name;
    auto* benchmark =
        benchmark::RegisterBenchmark(name.c_str(), BenchMatmul, c.format, c.activation, c.shape);
    benchmark->ArgNames({"rows", "threads"})->ArgsProduct({{1, 8, 512}, {1, 2}})->UseRealTime();
    benchmark->MinTime(0.2);
  }
}

}  // namespace
}  // namespace pagoda::bench

int main(int argc, char** argv) {
  pagoda::bench::RegisterMatmuls();
  benchmark::RegisterBenchmark("attention", pagoda::bench::BenchAttention)
      ->ArgNames({"tokens", "context", "threads"})
      ->ArgsProduct({{1}, {128, 512, 4'096}, {1, 2}})
      ->ArgsProduct({{512}, {512}, {1, 2}})
      ->UseRealTime()
      ->MinTime(0.2);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
