#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/ids.h"
#include "base/token_score.h"
#include "scheduler/events.h"

namespace pagoda::engine {

// Tokens that one choice of a request has just been given.
struct TokenDelivery {
  base::RequestId request;
  std::uint32_t choice = 0;
  std::span<const base::TokenId> tokens;  // valid during the call
  // Bytes of generated text, from its start and before UTF-8 repair, that may be shown by now: the
  // rest could still turn out to be part of a stop string. kNoTextLimit when the request has no
  // stop strings.
  std::uint64_t showable_bytes = kNoTextLimit;
  // Of each token, when they were asked for; their alternatives lie in the other array. Valid
  // during the call.
  std::span<const base::TokenScore> scores = {};
  std::span<const base::TokenLogprob> alternatives = {};

  static constexpr std::uint64_t kNoTextLimit = scheduler::StopProgress::kNoTextLimit;
};

// What the model says about tokens of a request's prompt, in order, beginning with the second.
struct PromptScoreDelivery {
  base::RequestId request;
  std::span<const base::TokenScore> scores;  // valid during the call, as are their alternatives
  std::span<const base::TokenLogprob> alternatives;
};

// Where the engine puts what clients will read. Called on the engine thread: must neither block nor
// allocate without bound. One exception: a request submitted after the engine has stopped is
// finished on the thread that submitted it.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual void OnTokens(const TokenDelivery& delivery) = 0;
  // Before the request's first OnTokens.
  virtual void OnPromptScores(const PromptScoreDelivery& delivery) = 0;
  // Exactly once per request, after its last OnTokens: all its choices have ended. How and where
  // each did stands in the event's request (Choice::finish, Choice::stop).
  virtual void OnFinished(scheduler::FinishEvent event) = 0;
  // The engine has failed for good. Every live request has had its OnFinished (kFailed) before, and
  // every later one gets it at once.
  virtual void OnEngineFailed(const absl::Status& why) = 0;
};

}  // namespace pagoda::engine
