#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/runtime/mutex.h"
#include "engine/output_sink.h"
#include "server/core/engine_port.h"

namespace pagoda::fakes {

// An engine whose every word is said by a test: it keeps what was submitted and asked of it, and
// delivers tokens and ends when told to. Messages take effect at the next Step, as at the real
// engine's next turn. Threads: the port's methods from any, the rest on one thread, which stands
// for the engine's.
class ScriptedEngine final : public server::EnginePort {
 public:
  void Connect(engine::OutputSink& sink) { sink_ = &sink; }

  void Submit(scheduler::NewRequest request) override {
    base::MutexLock lock(mutex_);
    const base::RequestId id = request.id;
    order_.push_back(id);
    mail_.push_back({id, Live{std::move(request), false, 0}, std::nullopt, std::nullopt});
  }
  void Cancel(base::RequestId id, scheduler::FinishReason why) override {
    base::MutexLock lock(mutex_);
    ++num_cancels_;
    mail_.push_back({id, std::nullopt, why, std::nullopt});
  }
  void SetPaused(base::RequestId id, bool paused) override {
    base::MutexLock lock(mutex_);
    pauses_.push_back(paused);
    mail_.push_back({id, std::nullopt, std::nullopt, paused});
  }
  // 7 for the first tenant, 8 for the next one.
  std::uint64_t epoch(base::TenantId tenant) const override { return 7 + tenant.value(); }
  std::vector<scheduler::TenantStats> tenant_stats() const override {
    base::MutexLock lock(mutex_);
    return tenant_stats_;
  }
  void SetTenantStats(std::vector<scheduler::TenantStats> stats) {
    base::MutexLock lock(mutex_);
    tenant_stats_ = std::move(stats);
  }
  // Answers at once; what was asked is kept.
  absl::StatusOr<std::int32_t> FlushPrefixCache(std::optional<base::TenantId> tenant) override {
    base::MutexLock lock(mutex_);
    flushes_.push_back(tenant);
    return 11;
  }
  absl::Status Reconfigure(std::vector<scheduler::TenantConfig> tenants) override {
    base::MutexLock lock(mutex_);
    reconfigured_ = std::move(tenants);
    return reconfigure_answer_;
  }
  absl::Status AddPublicPrefix(scheduler::NewRequest request,
                               std::vector<base::TenantId>) override {
    return Submit(std::move(request)), absl::OkStatus();
  }
  void AnswerReconfigure(absl::Status answer) {
    base::MutexLock lock(mutex_);
    reconfigure_answer_ = std::move(answer);
  }
  std::vector<std::optional<base::TenantId>> flushes() const {
    base::MutexLock lock(mutex_);
    return flushes_;
  }
  std::vector<scheduler::TenantConfig> reconfigured() const {
    base::MutexLock lock(mutex_);
    return reconfigured_;
  }
  engine::EngineStats stats() const override {
    base::MutexLock lock(mutex_);
    return stats_;
  }
  void SetStats(const engine::EngineStats& stats) {
    base::MutexLock lock(mutex_);
    stats_ = stats;
  }

  // Reads the messages: ends what was cancelled, notes pauses.
  void ReadMail() {
    std::deque<Message> mail;
    {
      base::MutexLock lock(mutex_);
      mail.swap(mail_);
    }
    for (Message& message : mail) {
      if (message.submitted.has_value()) {
        live_.emplace(message.id, std::move(*message.submitted));
      }
      const auto found = live_.find(message.id);
      if (found == live_.end()) continue;
      if (message.paused.has_value()) found->second.paused = *message.paused;
      if (message.cancel.has_value()) Finish(message.id, *message.cancel);
    }
  }

  void Deliver(base::RequestId id, std::vector<base::TokenId> tokens,
               std::uint64_t showable = engine::TokenDelivery::kNoTextLimit,
               std::uint32_t choice = 0) {
    Live& live = At(id);
    if (choice == 0) live.num_generated += static_cast<std::int32_t>(tokens.size());
    sink_->OnTokens(
        {.request = id, .choice = choice, .tokens = tokens, .showable_bytes = showable});
  }

  // The same with scores: of each token its negative as the log-probability, itself as the rank,
  // and so many alternatives.
  void DeliverScored(base::RequestId id, const std::vector<base::TokenId>& tokens,
                     std::uint32_t num_alternatives) {
    Live& live = At(id);
    live.num_generated += static_cast<std::int32_t>(tokens.size());
    const Scores made = MakeScores(tokens, num_alternatives);
    sink_->OnTokens({.request = id,
                     .tokens = tokens,
                     .scores = made.scores,
                     .alternatives = made.alternatives});
  }
  void DeliverPromptScores(base::RequestId id, const std::vector<base::TokenId>& tokens,
                           std::uint32_t num_alternatives) {
    const Scores made = MakeScores(tokens, num_alternatives);
    sink_->OnPromptScores(
        {.request = id, .scores = made.scores, .alternatives = made.alternatives});
  }

  struct End {
    scheduler::FinishReason reason = scheduler::FinishReason::kStop;
    std::uint64_t text_bytes = engine::TokenDelivery::kNoTextLimit;
    std::int32_t matched_stop = -1;
    std::int64_t matched_stop_token = -1;
    base::Instant admitted_at = {};
  };
  void Finish(base::RequestId id, scheduler::FinishReason reason) {
    Finish(id, End{.reason = reason});
  }
  void Finish(base::RequestId id, End end) {
    Live live = std::move(At(id));
    live_.erase(id);
    for (scheduler::Choice& choice : live.request.choices()) {
      choice.finish = end.reason;
      choice.stop.text_end = end.text_bytes;
      choice.stop.matched_stop = end.matched_stop;
      choice.stop.matched_stop_token = end.matched_stop_token;
    }
    scheduler::Receipt receipt;
    receipt.prompt_tokens = live.request.prompt_length();
    receipt.generated_tokens = live.num_generated;
    sink_->OnFinished({.request = std::move(live.request),
                       .reason = end.reason,
                       .was_admitted = live.num_generated > 0,
                       .admitted_at = end.admitted_at,
                       .receipt = receipt});
  }
  void FailForGood(const absl::Status& why) { sink_->OnEngineFailed(why); }

  // One step of a model that counts: every live, unpaused request gets the token (position +
  // choice) % modulus for each of its choices and ends at max_tokens. Returns whether anything is
  // live.
  bool StepAll(std::uint32_t modulus) {
    ReadMail();
    std::vector<base::RequestId> ids;
    for (const auto& [id, live] : live_) {
      if (!live.paused) ids.push_back(id);
    }
    for (base::RequestId id : ids) {
      const auto next = static_cast<base::TokenId>(At(id).num_generated);
      for (std::uint32_t choice = 0; choice < At(id).request.num_choices(); ++choice) {
        Deliver(id, {(next + choice) % modulus}, engine::TokenDelivery::kNoTextLimit, choice);
      }
      if (At(id).num_generated == At(id).request.max_tokens()) {
        Finish(id, scheduler::FinishReason::kLength);
      }
    }
    return !live_.empty();
  }

  const scheduler::NewRequest& request(base::RequestId id) { return At(id).request; }
  bool paused(base::RequestId id) { return At(id).paused; }
  std::size_t num_live() const { return live_.size(); }
  // The ids in the order of submission.
  std::vector<base::RequestId> submitted() const {
    base::MutexLock lock(mutex_);
    return order_;
  }
  std::vector<bool> pauses() const {
    base::MutexLock lock(mutex_);
    return pauses_;
  }
  std::int32_t num_cancels() const {
    base::MutexLock lock(mutex_);
    return num_cancels_;
  }

 private:
  struct Live {
    scheduler::NewRequest request;
    bool paused = false;
    std::int32_t num_generated = 0;
  };
  struct Message {
    base::RequestId id{0};
    std::optional<Live> submitted;
    std::optional<scheduler::FinishReason> cancel;
    std::optional<bool> paused;
  };
  struct Scores {
    std::vector<base::TokenScore> scores;
    std::vector<base::TokenLogprob> alternatives = {{99, -99.0f}};  // of someone else
  };
  static Scores MakeScores(const std::vector<base::TokenId>& tokens, std::uint32_t width) {
    Scores made;
    for (const base::TokenId token : tokens) {
      made.scores.push_back(
          {.of = {token, -static_cast<float>(token)},
           .rank = token,
           .first_alternative = static_cast<std::uint32_t>(made.alternatives.size()),
           .num_alternatives = width});
      for (std::uint32_t i = 0; i < width; ++i) made.alternatives.push_back({i, -0.5f});
    }
    return made;
  }
  Live& At(base::RequestId id) {
    const auto found = live_.find(id);
    PAGODA_CHECK(found != live_.end());
    return found->second;
  }

  engine::OutputSink* sink_ = nullptr;
  std::map<base::RequestId, Live> live_;
  mutable base::Mutex mutex_;
  std::deque<Message> mail_ PAGODA_GUARDED_BY(mutex_);
  std::vector<base::RequestId> order_ PAGODA_GUARDED_BY(mutex_);
  std::vector<bool> pauses_ PAGODA_GUARDED_BY(mutex_);
  engine::EngineStats stats_ PAGODA_GUARDED_BY(mutex_);
  std::int32_t num_cancels_ PAGODA_GUARDED_BY(mutex_) = 0;
  std::vector<scheduler::TenantStats> tenant_stats_ PAGODA_GUARDED_BY(mutex_);
  std::vector<std::optional<base::TenantId>> flushes_ PAGODA_GUARDED_BY(mutex_);
  std::vector<scheduler::TenantConfig> reconfigured_ PAGODA_GUARDED_BY(mutex_);
  absl::Status reconfigure_answer_ PAGODA_GUARDED_BY(mutex_);
};

}  // namespace pagoda::fakes
