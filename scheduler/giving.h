#pragma once

#include <cstdint>

#include "scheduler/admission.h"
#include "scheduler/scheduler_state.h"

namespace pagoda::scheduler {

// What one sequence gets of the step in the making, from the purse its pass may spend.

inline bool IsDecoding(const Sequence& sequence) { return sequence.gap() == 1; }
// Whether it has something to compute, blocks and the step's bounds aside. Requires: it runs.
inline bool IsPlannable(const Sequence& sequence) {
  return !sequence.is_paused && !sequence.waits_for_prompt && !sequence.last_token_is_in_flight();
}

// Gives one sequence at most `most` of its next tokens. Rows that are only scored leave
// `rows_for_others`. Returns whether it got any.
bool Give(SchedulerState& state, base::SlotId slot, std::int32_t most, Purse purse,
          std::int32_t rows_for_others = 0);
// Gives every sequence of a running request at most `most` of its next tokens.
void GiveAll(SchedulerState& state, RequestIndex index, std::int32_t most, Purse purse);

}  // namespace pagoda::scheduler
