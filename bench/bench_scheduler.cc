// One step of the scheduler in a full batch: TryPlan, Complete, Fence and the finish events, with
// admissions, growth, sealed blocks and ends in their ordinary mix. Beside it, in the same process,
// the time to copy the plan just made: what telling the executor costs at the least. `copies` is
// the ratio. `cpu_us` is the thread's processor time for the same: on a machine that is not idle it
// says more than the wall clock's.
//   bench_scheduler --benchmark_repetitions=5
// And the keys of a prompt's blocks, in nanoseconds for a token. Beside them, in the same process,
// what libsodium alone needs for the same messages, the key included: less is impossible with it.
#include <sodium.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "benchmark/benchmark.h"
#include "scheduler/namespace_minter.h"
#include "scheduler/scheduler.h"

namespace pagoda::bench {
namespace {

using scheduler::NewRequest;
using scheduler::Scheduler;
using scheduler::SchedulerConfig;
using scheduler::StepPlan;
using Clock = std::chrono::steady_clock;

double ThreadCpuSeconds() {
  timespec now{};
  PAGODA_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What one or more stretches of work took, in seconds.
struct Taken {
  double wall = 0;
  double cpu = 0;
};

// Adds the time from its making to its end.
class Stopwatch {
 public:
  explicit Stopwatch(Taken& taken)
      : taken_(taken), cpu_begin_(ThreadCpuSeconds()), begin_(Clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    taken_.wall += std::chrono::duration<double>(Clock::now() - begin_).count();
    taken_.cpu += ThreadCpuSeconds() - cpu_begin_;
  }

 private:
  Taken& taken_;
  const double cpu_begin_;
  const Clock::time_point begin_;
};

constexpr std::int32_t kPromptLength = 128;
constexpr std::int32_t kReplyLength = 256;
constexpr std::uint32_t kVocabulary = 1'000'000;

SchedulerConfig ConfigOf(std::int32_t batch, std::int32_t num_tenants) {
  SchedulerConfig config;
  config.block_size = config.key_domain.block_size = 16;
  const std::int32_t blocks_each = (kPromptLength + kReplyLength) / config.block_size;
  config.pool_blocks_per_group = {1 + batch * (blocks_each + 4)};
  config.max_num_seqs = batch;
  config.max_num_batched_tokens = batch + 2'048;
  config.max_logit_rows_per_step = batch;
  config.max_model_len = 4'096;
  config.max_queued_requests = 4 * batch;
  config.max_namespaces = batch;
  config.tenants.resize(static_cast<std::size_t>(num_tenants));
  return config;
}

struct Namespace {
  scheduler::NamespaceKey key;
  scheduler::BlockKeyer keyer;
};

// Keeps a scheduler busy: as many requests wait as run. Times only the scheduler.
class Mill {
 public:
  Mill(std::int32_t batch, std::int32_t num_tenants)
      : config_(ConfigOf(batch, num_tenants)), scheduler_(*Scheduler::Create(config_)) {
    const scheduler::NamespaceMinter minter(scheduler::NamespaceMinter::Secret{1});
    for (std::int32_t t = 0; t < num_tenants; ++t) {
      const auto key = *minter.Mint("tenant" + std::to_string(t), std::nullopt);
      namespaces_.push_back({key, scheduler::BlockKeyer(key, config_.key_domain)});
    }
    while (num_live_ < 2 * batch) Add();
    // Past the first prefills, so that ends and admissions are spread over the steps.
    for (int step = 0; step < 3 * kReplyLength; ++step) Step();
  }

  // The time in the scheduler.
  Taken Step() {
    Taken taken;
    newest_ = Plan(taken);
    PAGODA_CHECK(newest_ != nullptr);
    Answer(*newest_);
    finished_.clear();
    Finish(*newest_, taken);
    for (std::size_t i = 0; i < finished_.size(); ++i) Add();
    num_live_ -= static_cast<std::int32_t>(finished_.size());
    return taken;
  }

  void CopyNewestPlan(Taken& taken) {
    const Stopwatch watch(taken);
    copy_ = *newest_;
    benchmark::DoNotOptimize(copy_.work.data());
    benchmark::ClobberMemory();
  }

 private:
  const StepPlan* Plan(Taken& taken) {
    const Stopwatch watch(taken);
    return scheduler_->TryPlan(base::Instant());
  }

  void Finish(const StepPlan& plan, Taken& taken) {
    const Stopwatch watch(taken);
    scheduler_->Complete(result_, outcomes_);
    scheduler_->Fence(plan.job);
    scheduler_->TakeFinished(finished_);
  }

  void Add() {
    scheduler::ModelLimits limits;
    limits.vocabulary_size = kVocabulary;
    limits.max_model_len = config_.max_model_len;
    limits.block_size = config_.block_size;
    limits.capacity_blocks = Scheduler::CapacityBlocks(config_);
    scheduler::RequestFields fields;
    // Of different lengths, so that the ends are spread.
    fields.max_tokens =
        kReplyLength / 2 + static_cast<std::int32_t>(num_added_ * 37 % kReplyLength);
    auto request = *NewRequest::Create(fields, limits, /*drawn_seed=*/7);
    std::vector<base::TokenId> prompt(kPromptLength);
    std::iota(prompt.begin(), prompt.end(),
              static_cast<base::TokenId>(num_added_ * 131 % (kVocabulary - kPromptLength)));
    PAGODA_CHECK(request.AttachPrompt(prompt, limits).ok());
    request.id = base::RequestId(++num_added_);
    request.tenant =
        base::TenantId(static_cast<std::uint32_t>(num_added_ % config_.tenants.size()));
    const Namespace& own = namespaces_[request.tenant.value()];
    request.AttachKeys(own.key, own.keyer);
    scheduler_->Add(std::move(request));
    ++num_live_;
  }

  void Answer(const StepPlan& plan) {
    result_.job = plan.job;
    result_.samples.clear();
    result_.tokens.clear();
    outcomes_.clear();
    for (const scheduler::SampleRequest& sample : plan.samples) {
      scheduler::SampleResult& given = result_.samples.emplace_back();
      given.slot = sample.slot;
      given.slot_generation = sample.slot_generation;
      given.choice = sample.choice;
      given.position = sample.position;
      given.tokens = {static_cast<std::uint32_t>(result_.tokens.size()), 1};
      result_.tokens.push_back(sample.position);
      scheduler::SampleOutcome& outcome = outcomes_.emplace_back();
      outcome.num_accepted = 1;
      const auto id = scheduler_->RequestFor(given);
      if (!id.has_value()) continue;
      const NewRequest& request = scheduler_->request(*id);
      const std::int32_t length = request.choice(0).num_known() + 1;
      if (length < request.prompt_length() + request.max_tokens()) continue;
      outcome.finish = scheduler::FinishReason::kLength;
    }
  }

  const SchedulerConfig config_;
  std::vector<Namespace> namespaces_;  // by tenant
  std::unique_ptr<Scheduler> scheduler_;
  scheduler::StepResult result_;
  std::vector<scheduler::SampleOutcome> outcomes_;
  std::vector<scheduler::FinishEvent> finished_;
  const StepPlan* newest_ = nullptr;
  StepPlan copy_;
  std::uint64_t num_added_ = 0;
  std::int32_t num_live_ = 0;
};

double MedianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Medians of steps, as a step that the machine interrupts says nothing about the scheduler.
void BM_Step(benchmark::State& state) {
  Mill mill(static_cast<std::int32_t>(state.range(0)), static_cast<std::int32_t>(state.range(1)));
  std::vector<double> steps, cpu_of_steps, copies;
  for (auto unused : state) {
    const Taken step = mill.Step();
    Taken copy;
    mill.CopyNewestPlan(copy);
    steps.push_back(step.wall);
    cpu_of_steps.push_back(step.cpu);
    copies.push_back(copy.wall);
    state.SetIterationTime(step.wall);
  }
  state.counters["mean_cpu_us"] = std::accumulate(cpu_of_steps.begin(), cpu_of_steps.end(), 0.0) *
                                  1e6 / static_cast<double>(cpu_of_steps.size());
  const double step = MedianOf(steps);
  state.counters["median_us"] = step * 1e6;
  state.counters["cpu_us"] = MedianOf(cpu_of_steps) * 1e6;
  state.counters["copies"] = step / MedianOf(copies);
}
BENCHMARK(BM_Step)
    ->ArgNames({"batch", "tenants"})
    ->ArgsProduct({{256, 1'024}, {1, 4}})
    ->UseManualTime()
    ->Iterations(2'000)
    ->Unit(benchmark::kMicrosecond);

// The median of the rounds' times, for a token.
template <typename Work>
double MedianNsPerToken(std::size_t num_tokens, const Work& work) {
  constexpr int kRounds = 301;
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) {
    Taken taken;
    {
      const Stopwatch watch(taken);
      work();
    }
    rounds.push_back(taken.wall * 1e9 / static_cast<double>(num_tokens));
  }
  return MedianOf(rounds);
}

// The message of a block's key is two fields with a tag and a length each: the parent, the tokens.
void HashAsKeysDo(std::span<const base::TokenId> tokens, std::size_t block_size) {
  constexpr std::size_t kPrefix = 9, kParent = 32;
  std::array<std::uint8_t, kParent> key{}, parent{};
  std::array<std::uint8_t, 2 * kPrefix + kParent + 64 * sizeof(base::TokenId)> message{};
  const std::size_t num_bytes = block_size * sizeof(base::TokenId);
  for (std::size_t i = 0; i + block_size <= tokens.size(); i += block_size) {
    std::memcpy(message.data() + kPrefix, parent.data(), kParent);
    std::memcpy(message.data() + 2 * kPrefix + kParent, tokens.data() + i, num_bytes);
    PAGODA_CHECK(crypto_generichash(parent.data(), parent.size(), message.data(),
                                    2 * kPrefix + kParent + num_bytes, key.data(),
                                    key.size()) == 0);
  }
  benchmark::DoNotOptimize(parent);
}

void BM_Keys(benchmark::State& state) {
  scheduler::KeyDomain domain;
  domain.block_size = static_cast<std::int32_t>(state.range(0));
  const auto key = *scheduler::NamespaceMinter(scheduler::NamespaceMinter::Secret{1})
                        .Mint("tenant", std::nullopt);
  const scheduler::BlockKeyer keyer(key, domain);
  std::vector<base::TokenId> prompt(16'384);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<base::TokenId>(i * 2'654'435'761u % 49'152u);
  }
  std::vector<scheduler::BlockKey> keys;
  keys.reserve(prompt.size() / static_cast<std::size_t>(domain.block_size));
  for (auto unused : state) {
    const double ours = MedianNsPerToken(prompt.size(), [&] {
      keys.clear();
      keyer.ExtendKeys(prompt, keys);
      benchmark::DoNotOptimize(keys.data());
    });
    const double alone = MedianNsPerToken(
        prompt.size(), [&] { HashAsKeysDo(prompt, static_cast<std::size_t>(domain.block_size)); });
    state.counters["ns_per_token"] = ours;
    state.counters["libsodium_ns"] = alone;
    state.counters["of_libsodium"] = ours / alone;
  }
}
BENCHMARK(BM_Keys)->ArgName("block")->Arg(16)->Arg(4)->Arg(64)->Iterations(1);

}  // namespace
}  // namespace pagoda::bench

BENCHMARK_MAIN();
