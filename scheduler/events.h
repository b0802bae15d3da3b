#pragma once

#include <cstdint>
#include <optional>

#include "base/instant.h"
#include "scheduler/choice.h"
#include "scheduler/receipt.h"
#include "scheduler/request.h"

namespace pagoda::scheduler {

// The request has left the scheduler. Its buffers go back to a text worker, which frees them. How
// each choice ended stands in it.
struct FinishEvent {
  NewRequest request;
  FinishReason reason = FinishReason::kStop;  // of what ended last
  bool was_admitted = false;
  base::Instant admitted_at = {};  // of the first plan with it; holds when was_admitted
  Receipt receipt;
};

// Where scores of a prompt belong.
struct ScorePlace {
  base::RequestId request;
  std::uint32_t next_position = 0;  // scores before it were given already
};

// What the engine thread decided about one sample, token by token (stops have one owner).
struct SampleOutcome {
  std::uint32_t num_accepted = 0;      // of the sample's tokens
  std::optional<FinishReason> finish;  // the last accepted token ended the choice
};

}  // namespace pagoda::scheduler
