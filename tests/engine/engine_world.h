#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/counter_rng.h"
#include "engine/engine_loop.h"
#include "scheduler/namespace_minter.h"
#include "scheduler/scheduler.h"
#include "tests/fakes/digest_executor.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/recording_sink.h"

namespace pagoda::engine {

inline constexpr base::TokenId kVocabulary = 512;
inline constexpr base::TokenId kEos = kVocabulary - 1;
inline constexpr std::int32_t kMailboxCapacity = 256;

// A small world: blocks of 4 tokens, replies that fit.
struct WorldConfig {
  std::int32_t pool_blocks = 257;
  std::int32_t max_num_seqs = 8;
  std::int32_t budget_tokens = 64;
  std::int32_t max_model_len = 96;
  std::int32_t max_logit_rows = 64;
  base::TokenId vocabulary_size = kVocabulary;
  int max_in_flight = 1;
  fakes::DigestOptions::Timing timing = fakes::DigestOptions::Timing::kAtSubmit;
};

inline scheduler::SchedulerConfig SchedulerConfigOf(const WorldConfig& world) {
  scheduler::SchedulerConfig config;
  config.pool_blocks_per_group = {world.pool_blocks};
  config.block_size = 4;
  config.max_num_seqs = world.max_num_seqs;
  config.max_num_batched_tokens = world.budget_tokens;
  config.max_model_len = world.max_model_len;
  config.max_in_flight = world.max_in_flight;
  config.max_logit_rows_per_step = world.max_logit_rows;
  config.vocabulary_size = world.vocabulary_size;
  config.max_queued_requests = 64;
  config.key_domain.block_size = 4;
  return config;
}

inline std::unique_ptr<scheduler::Scheduler> MakeScheduler(const WorldConfig& world) {
  auto made = scheduler::Scheduler::Create(SchedulerConfigOf(world));
  PAGODA_CHECK_MSG(made.ok(), made.status().ToString());
  return *std::move(made);
}

inline std::unique_ptr<fakes::DigestExecutor> MakeDigest(const WorldConfig& world) {
  return std::make_unique<fakes::DigestExecutor>(
      fakes::DigestOptions{.pool_blocks_per_group = {world.pool_blocks},
                           .block_size = 4,
                           .max_num_seqs = world.max_num_seqs,
                           .max_model_len = world.max_model_len,
                           .vocabulary_size = kEos,
                           .max_in_flight = world.max_in_flight,
                           .timing = world.timing});
}

// What a test asks for; the seed is the request's script or its draw.
struct Ask {
  std::uint64_t id = 1;
  std::vector<base::TokenId> prompt = {1, 2, 3};
  std::int32_t max_tokens = 8;
  std::uint64_t seed = 1;
  base::Instant deadline = base::Instant::Never();
  std::vector<base::TokenId> stop_token_ids = {};
  std::optional<float> temperature = std::nullopt;
  std::optional<float> top_p = std::nullopt;
  std::optional<float> frequency_penalty = std::nullopt;
  std::optional<float> repetition_penalty = std::nullopt;
  std::uint32_t n = 1;
  bool ignore_eos = false;
  std::optional<float> presence_penalty = std::nullopt;
  std::optional<float> min_p = std::nullopt;
  std::optional<std::int32_t> top_k = std::nullopt;
  std::optional<std::int32_t> min_tokens = std::nullopt;
  std::optional<std::int32_t> logprobs = std::nullopt;
  std::optional<std::int32_t> prompt_logprobs = std::nullopt;
  std::vector<base::TokenId> logprob_token_ids = {};
  std::optional<std::vector<base::TokenId>> allowed_token_ids = std::nullopt;
  std::vector<base::LogitBias> logit_bias = {};
  std::vector<std::vector<base::TokenId>> bad_words = {};
};

inline scheduler::NewRequest MakeRequest(const Ask& ask, const WorldConfig& world = {}) {
  const scheduler::SchedulerConfig config = SchedulerConfigOf(world);
  const scheduler::ModelLimits limits{
      .vocabulary_size = world.vocabulary_size,
      .max_model_len = world.max_model_len,
      .block_size = 4,
      .capacity_blocks = scheduler::Scheduler::CapacityBlocks(config),
      .max_num_seqs = config.max_num_seqs,
      .eos_tokens = {kEos}};
  scheduler::RequestFields fields;
  fields.max_tokens = ask.max_tokens;
  fields.seed = ask.seed;
  fields.deadline = ask.deadline;
  fields.stop_token_ids = ask.stop_token_ids;
  fields.temperature = ask.temperature;
  fields.top_p = ask.top_p;
  fields.frequency_penalty = ask.frequency_penalty;
  fields.repetition_penalty = ask.repetition_penalty;
  fields.n = static_cast<std::int32_t>(ask.n);
  fields.ignore_eos = ask.ignore_eos;
  fields.presence_penalty = ask.presence_penalty;
  fields.min_p = ask.min_p;
  fields.top_k = ask.top_k;
  fields.min_tokens = ask.min_tokens;
  fields.logprobs = ask.logprobs;
  fields.prompt_logprobs = ask.prompt_logprobs;
  fields.logprob_token_ids = ask.logprob_token_ids;
  fields.allowed_token_ids = ask.allowed_token_ids;
  fields.logit_bias = ask.logit_bias;
  auto request = scheduler::NewRequest::Create(fields, limits, 0);
  PAGODA_CHECK_MSG(request.ok(), request.status().ToString());
  PAGODA_CHECK(request->AttachBadWords(ask.bad_words, limits).ok());
  const absl::Status attached = request->AttachPrompt(ask.prompt, limits);
  PAGODA_CHECK_MSG(attached.ok(), attached.ToString());
  const auto key = scheduler::NamespaceMinter({}).Mint("default", std::nullopt);
  PAGODA_CHECK(key.ok());
  request->AttachKeys(*key, scheduler::BlockKeyer(*key, config.key_domain));
  request->id = base::RequestId(ask.id);
  return *std::move(request);
}

// Prompts of 1 ... 40 tokens; every second one begins like the others, so that there is reuse.
// Every third one is greedy, the others draw, half of them with penalties.
inline std::vector<Ask> MakeAsks(std::size_t count, std::uint64_t seed) {
  std::vector<Ask> asks;
  for (std::size_t i = 0; i < count; ++i) {
    const auto lengths = base::Philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, seed);
    Ask ask{.id = i + 1, .prompt = {}, .seed = seed + i};
    ask.max_tokens = static_cast<std::int32_t>(1 + lengths[1] % 30);
    for (std::uint32_t p = 0; p < 1 + lengths[0] % 40; ++p) {
      const bool shared = i % 2 == 0 && p < 18;
      const auto word =
          base::Philox4x32({shared ? 0 : static_cast<std::uint32_t>(i), 1, p, 0}, seed);
      ask.prompt.push_back(word[0] % kEos);
    }
    ask.temperature = i % 3 == 0 ? 0.0f : 0.9f;
    if (i % 3 != 0) ask.top_p = 0.95f;
    if (i % 4 == 1) {
      ask.frequency_penalty = 0.5f;
      ask.repetition_penalty = 1.2f;
    }
    asks.push_back(std::move(ask));
  }
  return asks;
}

// The engine without its thread, checked after every turn.
class EngineWorld {
 public:
  EngineWorld(const WorldConfig& config, std::unique_ptr<Executor> executor)
      : config_(config),
        scheduler_(MakeScheduler(config)),
        executor_(std::move(executor)),
        loop_({.mailbox_capacity = kMailboxCapacity, .eos_tokens = {kEos}}, *scheduler_, *executor_,
              sink_, clock_) {}

  void Submit(const Ask& ask) { Submit(MakeRequest(ask, config_)); }
  void Submit(scheduler::NewRequest request) {
    loop_.Handle({.kind = Message::Kind::kSubmit, .request = std::move(request)});
  }
  void Cancel(std::uint64_t id) {
    loop_.Handle({.kind = Message::Kind::kCancel, .id = base::RequestId(id)});
  }
  void SetPaused(std::uint64_t id, bool paused) {
    loop_.Handle({.kind = Message::Kind::kSetPaused, .id = base::RequestId(id), .paused = paused});
  }

  EngineLoop::Turn Turn() {
    const EngineLoop::Turn turn = loop_.RunTurn();
    scheduler_->CheckInvariants();
    return turn;
  }
  void RunUntilIdle() {
    for (int turns = 0; Turn() == EngineLoop::Turn::kWorked; ++turns) {
      PAGODA_CHECK_MSG(turns < 100'000, "the engine does not come to rest");
    }
  }

  fakes::RecordingSink::Reply reply(std::uint64_t id, std::uint32_t choice = 0) const {
    return sink_.reply(base::RequestId(id), choice);
  }
  // Nothing is held any more: every block is free or cached.
  bool AllReturned() const {
    const scheduler::SchedulerStats stats = scheduler_->stats();
    return scheduler_->idle() && loop_.stats().num_paused == 0 && stats.num_running == 0 &&
           stats.num_waiting == 0 && stats.queued_tokens == 0 &&
           stats.blocks_free + stats.blocks_cached + 1 == stats.blocks_total;
  }

  EngineLoop& loop() { return loop_; }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  fakes::RecordingSink& sink() { return sink_; }
  fakes::ManualClock& clock() { return clock_; }

 private:
  const WorldConfig config_;
  fakes::ManualClock clock_;
  fakes::RecordingSink sink_;
  const std::unique_ptr<scheduler::Scheduler> scheduler_;
  const std::unique_ptr<Executor> executor_;
  EngineLoop loop_;
};

// What the request gives when nothing else has ever run: the oracle of every equality.
inline std::vector<base::TokenId> SoloReply(const Ask& ask) {
  EngineWorld world({}, MakeDigest({}));
  const std::uint64_t id = ask.id;
  world.Submit(ask);
  world.RunUntilIdle();
  PAGODA_CHECK(world.reply(id).reason == scheduler::FinishReason::kLength);
  return world.reply(id).tokens;
}

}  // namespace pagoda::engine
