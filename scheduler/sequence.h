#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/strong_id.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/receipt.h"
#include "scheduler/request.h"
#include "scheduler/step_budget.h"

namespace pagoda::scheduler {

// A place in the slab of live requests. Places are reused; RequestIds are not.
using RequestIndex = base::StrongId<struct RequestIndexTag, std::uint32_t>;

// Whose content a block holds (owner_check.h).
using BlockOwner = base::StrongId<struct BlockOwnerTag, std::uint64_t>;

// A request from its acceptance to its end: waiting, or running with a slot for every open choice.
// All its choices are admitted, preempted and tried again together.
struct LiveRequest {
  enum class Phase : std::uint8_t { kVacant, kWaiting, kRunning };

  std::optional<NewRequest> request;
  Phase phase = Phase::kVacant;
  bool paused = false;

  // Of the running incarnation.
  std::uint64_t incarnation = 0;              // never reused, by any request
  NamespaceIndex* cache_namespace = nullptr;  // null for a one-request namespace

  // Its prompt becomes a prefix of the public lane, for these readers (none: for everybody).
  bool is_public_prefix = false;
  std::vector<base::TenantId> public_readers;

  // Kept across incarnations.
  std::uint64_t key_epoch = 0;
  std::int32_t num_open = 0;  // choices that have not ended
  std::int32_t times_overtaken = 0;
  std::int32_t num_failures = 0;  // of its step, in a row without a new token
  bool was_admitted = false;
  base::Instant admitted_at;  // the first time
  // Leading tokens of the prompt whose score has been given; the first has none.
  std::int32_t num_scored = 1;
  std::int64_t added_at_step = 0;
  base::JobId counted_prefill, counted_decode;  // the newest jobs in the receipt's steps
  Receipt receipt;

  bool is_running() const { return phase == Phase::kRunning; }
  // Rows of the prompt that are still to be scored; they are its first open choice's.
  ScoredRows scored_rows() const {
    const std::int32_t end = request->prompt_length() - 1;
    if (!request->sampling().prompt_logprobs.has_value() || num_scored > end) return {};
    return {.begin = num_scored - 1, .end = end};
  }
  // Whether it computes its prompt itself: because it was asked to, or because what is found in the
  // cache has no rows to score.
  bool computes_all() const { return request->skips_reading_cache() || scored_rows().end > 0; }
  // Requires: not ended.
  const Choice& first_open() const {
    return *std::ranges::find_if(request->choices(), &Choice::is_open);
  }
};

// An open choice of a running request: what its slot's row is doing, and beside it what an ordinary
// step asks of the request, so that a step of a full batch walks one array. What is counted in
// tokens only ever grows within one incarnation (from an admission to the preemption or the end):
// num_computed
// <= num_planned <= num_expected - 1 or so, and num_known <= num_expected.
//
//   0 ............ num_computed ........ num_planned ..... num_known ....... num_expected
//   | KV is in the pool | jobs in flight write it | to plan | tokens in flight |
struct alignas(64) Sequence {
  RequestIndex request;
  std::uint32_t choice = 0;
  base::SlotId slot;
  base::TenantId tenant;
  std::int32_t prompt_length = 0;
  std::int32_t max_length = 0;
  std::int32_t num_known = 0;     // tokens of its choice
  std::int32_t num_computed = 0;  // tokens whose KV completed jobs have written, or that were found
  std::int32_t num_planned = 0;   // tokens that jobs up to the newest compute
  std::int32_t num_expected = 0;  // known tokens, and those that jobs in flight will give
  std::int32_t num_sealed = 0;    // leading blocks that need no seal any more
  std::int32_t num_keyed = 0;     // leading blocks of the known tokens that surely have their key
  std::int32_t high_water = 0;    // tokens its choice has ever planned
  base::TokenId newest_token = 0;    // the last of the known ones
  bool is_paused = false;            // as its request is
  bool has_siblings = false;         // its request has more choices than one, open or not
  bool asks_for_scores = false;      // of its prompt; which are still to come, its request knows
  bool began_after_failure = false;  // a step of its request had failed when this stay began
  // The request's first open choice is computing the prompt for it (forking.h): until it has, the
  // places of the prompt's full blocks are empty, and nothing is planned.
  bool waits_for_prompt = false;
  // Its choice, in its request: a step asks for its tokens alone. Stays where it is while it runs.
  Choice* record = nullptr;
  base::JobId last_job;         // the newest submitted job that names its blocks
  base::JobId last_handed_job;  // the newest that handed it blocks or copied into them
  // The newest plan that left it out for what is on its way: its next block's key, or blocks.
  base::JobId waited_in;

  base::RequestId request_id;
  std::uint64_t incarnation = 0;
  BlockOwner owner;
  // Of this stay in the slot, for the receipt of its request (CountStay).
  std::int32_t prefill_steps = 0, decode_steps = 0;

  std::int32_t gap() const { return num_expected - num_planned; }
  // The token that reaches max_tokens is in flight: nothing is left to plan.
  bool last_token_is_in_flight() const { return num_expected >= max_length; }
};

}  // namespace pagoda::scheduler
