// Whole steps of a real model: prefill of a prompt and decode of several sequences, without
// sampling and text.
//   bench_model MODEL.gguf [threads, 1 when left out]
// Prints tokens per second, the best of several rounds, in the shapes of llama-bench (pp, tg) and
// llama-batched-bench; and as a share of what this machine's slower limit, measured just before,
// would allow: reading every weight once a step, or all products of weights in byte arithmetic.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/machine_limits.h"
#include "model/checkpoint.h"
#include "model/model.h"

namespace pagoda::bench {
namespace {

constexpr std::int32_t kBlockSize = 16;
constexpr int kRounds = 5;

using Clock = std::chrono::steady_clock;

class Steps {
 public:
  Steps(model::Model& model, std::int32_t num_blocks) : model_(model) {
    for (std::int32_t b = 1; b < num_blocks; ++b) blocks_.push_back(static_cast<std::uint32_t>(b));
  }

  // Each of num_sequences adds num_tokens tokens behind first_position; one row of logits each.
  void Run(std::int32_t num_sequences, std::int32_t num_tokens, std::int32_t first_position,
           std::int32_t max_tokens) {
    tokens_.assign(static_cast<std::size_t>(num_sequences * num_tokens), 0);
    for (base::TokenId& token : tokens_) token = next_token_ = (next_token_ * 31 + 7) % 40'000;
    const std::int32_t blocks_each = (max_tokens + kBlockSize - 1) / kBlockSize;
    sequences_.clear();
    logit_rows_.clear();
    for (std::int32_t s = 0; s < num_sequences; ++s) {
      model::SequenceInput sequence;
      sequence.slot = base::SlotId(static_cast<std::uint32_t>(s));
      sequence.first_row = s * num_tokens;
      sequence.num_tokens = num_tokens;
      sequence.first_position = first_position;
      sequence.block_tables = {std::span(blocks_).subspan(static_cast<std::size_t>(s * blocks_each),
                                                          static_cast<std::size_t>(blocks_each))};
      sequences_.push_back(std::move(sequence));
      logit_rows_.push_back((s + 1) * num_tokens - 1);
    }
    const absl::Status status =
        model_.Forward({.tokens = tokens_, .sequences = sequences_, .logit_rows = logit_rows_});
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::exit(1);
    }
  }

 private:
  model::Model& model_;
  std::vector<std::uint32_t> blocks_;
  std::vector<base::TokenId> tokens_;
  std::vector<model::SequenceInput> sequences_;
  std::vector<std::int32_t> logit_rows_;
  base::TokenId next_token_ = 1;
};

// What the matrices of a model ask of a machine; KV, norms and attention are left out, so that
// the limit is too high rather than too low.
struct Work {
  double weight_bytes = 0;      // read once a step
  double products_a_token = 0;  // of the layers
  double products_a_row = 0;    // of the head, for each row of logits
};

absl::StatusOr<Work> WorkOf(const std::string& path) {
  auto checkpoint = model::Checkpoint::Open(path);
  if (!checkpoint.ok()) return checkpoint.status();
  Work work;
  double embedding = 0;
  for (const model::StoredTensor& tensor : (*checkpoint)->tensors()) {
    if (tensor.shape.size() != 2) continue;
    const double products = static_cast<double>(tensor.shape[0] * tensor.shape[1]);
    work.weight_bytes += static_cast<double>(tensor.data.size());
    if (tensor.name == "token_embd.weight") {
      embedding = products;
    } else if (tensor.name == "output.weight") {
      work.products_a_row = products;
    } else {
      work.products_a_token += products;
    }
  }
  if (work.products_a_row == 0) work.products_a_row = embedding;  // the head is the embedding
  return work;
}

// Tokens per second that the slower limit allows where a step has so many tokens and rows.
double LimitOf(const Work& work, const MachineLimits& limits, double tokens, double rows) {
  const double reading = work.weight_bytes / limits.read_bytes_per_second;
  const double products = tokens * work.products_a_token + rows * work.products_a_row;
  return tokens / std::max(reading, products / limits.int8_products_per_second);
}

// The best rate of some rounds, their spread, and the rate per second of processor time, which
// other work on the machine disturbs least.
template <typename Round>
void Report(const char* name, std::int64_t num_tokens, double limit, const Round& round) {
  std::vector<double> rates;
  double best_per_cpu_second = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = Clock::now();
    const std::clock_t start_cpu = std::clock();
    round();
    const std::chrono::duration<double> seconds = Clock::now() - start;
    rates.push_back(static_cast<double>(num_tokens) / seconds.count());
    const double cpu_seconds = static_cast<double>(std::clock() - start_cpu) / CLOCKS_PER_SEC;
    best_per_cpu_second =
        std::max(best_per_cpu_second, static_cast<double>(num_tokens) / cpu_seconds);
  }
  std::sort(rates.begin(), rates.end());
  std::printf(
      "%-24s %9.1f tokens/s  (median %.1f, least %.1f; %.1f per CPU second; %.2f of limit)\n", name,
      rates.back(), rates[kRounds / 2], rates.front(), best_per_cpu_second, rates.back() / limit);
  std::fflush(stdout);
}

int Main(const std::string& path, int num_threads) {
  auto model = model::Model::Load(path, {.num_threads = num_threads});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  constexpr std::int32_t kNumBlocks = 600;
  if (const absl::Status status = (*model)->AllocateKv(kNumBlocks); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  const auto work = WorkOf(path);
  if (!work.ok()) {
    std::fprintf(stderr, "%s\n", work.status().ToString().c_str());
    return 1;
  }
  const MachineLimits limits = MeasureLimits(num_threads);
  std::printf("limits: %.1f GB/s read, %.1f G products of bytes/s\n",
              limits.read_bytes_per_second / 1e9, limits.int8_products_per_second / 1e9);
  Steps steps(**model, kNumBlocks);
  Report("prefill 512", 512, LimitOf(*work, limits, 512, 1), [&] { steps.Run(1, 512, 0, 512); });
  constexpr std::int32_t kGenerated = 64;
  for (const std::int32_t num_sequences : {1, 8, 32}) {
    const std::string name = "decode B=" + std::to_string(num_sequences) + " behind 128";
    for (std::int32_t first = 0; first < 128; first += 16) steps.Run(num_sequences, 16, first, 256);
    const double limit = LimitOf(*work, limits, num_sequences, num_sequences);
    Report(name.c_str(), num_sequences * kGenerated, limit, [&] {
      for (std::int32_t i = 0; i < kGenerated; ++i) steps.Run(num_sequences, 1, 128 + i, 256);
    });
  }
  return 0;
}

}  // namespace
}  // namespace pagoda::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_model MODEL.gguf [threads]\n");
    return 2;
  }
  return pagoda::bench::Main(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 1);
}
