#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "scheduler/receipt.h"
#include "scheduler/request.h"

namespace pagoda::scheduler {

enum class FinishReason : std::uint8_t {
  kStop,       // EOS, stop id or stop string
  kLength,     // max_tokens
  kCancelled,  // by the caller
  kDeadline,
  kSlowConsumer,
  kNonFinite,  // the model's logits were not finite
  kFailed,     // the request's step failed twice, the second time alone
  kShutdown,   // the drain's grace ended
};

// The request has left the scheduler. Its buffers go back to a text worker, which frees them.
struct FinishEvent {
  NewRequest request;
  FinishReason reason = FinishReason::kStop;
  bool was_admitted = false;
  Receipt receipt;
};

// What the engine thread decided about one sample, token by token (stops have one owner).
struct SampleOutcome {
  std::uint32_t num_accepted = 0;      // of the sample's tokens
  std::optional<FinishReason> finish;  // the last accepted token ended the request
};

// Progress of a choice's stop condition; plain data, kept across preemption and in the snapshot.
struct StopProgress {
  std::uint32_t state = 0;
  std::uint32_t held_bytes = 0;
  std::uint64_t text_bytes =
      0;  // generated so far, before UTF-8 repair; counted only with a stop condition
  std::uint32_t grammar_state = 0;
};

}  // namespace pagoda::scheduler
