#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/strong_id.h"
#include "scheduler/events.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/receipt.h"
#include "scheduler/request.h"

namespace pagoda::scheduler {

// A place in the slab of live requests. Places are reused; RequestIds are not.
using SequenceIndex = base::StrongId<struct SequenceIndexTag, std::uint32_t>;

// A live request: waiting or running. What is counted in tokens only ever grows within one
// incarnation (from an admission to the preemption or the end):  num_computed <= num_planned <=
// num_expected - 1 or so, and known <= num_expected.
//
//   0 ............ num_computed ........ num_planned ..... known ....... num_expected
//   | KV is in the pool | jobs in flight write it | to plan | tokens in flight |
struct Sequence {
  enum class Phase : std::uint8_t { kVacant, kWaiting, kRunning };

  std::optional<NewRequest> request;
  Phase phase = Phase::kVacant;
  bool paused = false;

  // Of the running incarnation.
  std::uint64_t incarnation = 0;  // never reused, by any request
  base::SlotId slot;
  NamespaceIndex* cache_namespace = nullptr;  // null for a one-request namespace
  std::int32_t num_computed = 0;  // tokens whose KV completed jobs have written, or that were found
  std::int32_t num_planned = 0;   // tokens that jobs up to the newest compute
  std::int32_t num_expected = 0;  // known tokens, and those that jobs in flight will give
  std::int32_t num_sealed = 0;    // leading blocks that need no seal any more
  base::JobId last_job;           // the newest submitted job that names its blocks
  base::JobId last_handed_job;    // the newest that handed it blocks or copied into them

  // Kept across incarnations.
  std::uint64_t key_epoch = 0;
  std::int32_t high_water = 0;  // tokens ever planned: what lies below is recomputed
  std::int32_t times_overtaken = 0;
  std::int32_t num_failures = 0;  // of its step, in a row without a new token
  bool was_admitted = false;
  std::int64_t added_at_step = 0;
  StopProgress stop;
  Receipt receipt;

  std::int32_t num_known() const { return static_cast<std::int32_t>(request->tokens().size()); }
  std::int32_t gap() const { return num_expected - num_planned; }
  std::int32_t max_length() const { return request->prompt_length() + request->max_tokens(); }
  bool is_running() const { return phase == Phase::kRunning; }
  // The token that reaches max_tokens is in flight: nothing is left to plan.
  bool last_token_is_in_flight() const { return num_expected >= max_length(); }
  bool is_plannable() const { return is_running() && !paused && !last_token_is_in_flight(); }
};

}  // namespace pagoda::scheduler
