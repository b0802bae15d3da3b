#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sampling_params.h"
#include "base/token_score.h"

namespace pagoda::scheduler {

// A run of entries in one of the plan's arrays.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

// A sequence gets a device row: everything the device needs to know about it, once. Its block
// tables start empty. Slots in `closed` are closed before any is opened; closing one that is not
// open (after a failed step) does nothing.
struct SlotOpening {
  base::SlotId slot;
  std::uint32_t slot_generation = 0;  // counts the openings of this slot; results name it
  base::AdapterId adapter = base::kBaseModel;
  base::SamplingParams sampling;
  std::uint32_t num_prompt_tokens =
      0;                 // the first tokens of the history that penalties count as prompt
  Range history;         // in StepPlan::tokens: all known tokens, prompt and generated
  Range logit_bias;      // in StepPlan::logit_bias
  Range stop_token_ids;  // in StepPlan::tokens: masked, with EOS, while below min_tokens
  Range bad_words;       // in StepPlan::tokens: each word as its number of tokens, then the tokens
  Range allowed_words;   // in StepPlan::allowed_words: a bit per token; none: all are allowed
  Range logprob_token_ids;  // in StepPlan::tokens; none: the likeliest
};

// One input token: a value, or "what the newest sample of this slot gave" when the step that
// samples it is in flight.
struct PlanToken {
  base::TokenId value = 0;
  bool last_of_slot = false;
};

// Part of one sequence's gap between computed and known tokens.
struct WorkItem {
  base::SlotId slot;
  std::uint32_t first_position = 0;
  Range tokens;  // in StepPlan::plan_tokens; positions first_position, +1, ... A value past the
                 // row's history extends it.
  std::uint32_t num_without_kv =
      0;  // leading tokens whose KV is already in the pool: computed again, not written
  std::uint32_t num_drafts = 0;  // trailing tokens that are guesses
  Range appended_blocks;  // in StepPlan::block_appends: appended to the slot's tables before this
                          // step
};

// The table of `group` of the work item's slot grows by `block`. An entry with replace_index >= 0
// replaces instead (adoption).
struct BlockAppend {
  base::KvGroupId group;
  base::BlockId block;
  std::int32_t replace_index = -1;
};

// A row of hidden states that must reach the LM head.
struct LogitRow {
  std::uint32_t work = 0;    // index into StepPlan::work
  std::uint32_t offset = 0;  // token of that work item
};

// Draw a token from a row.
struct SampleRequest {
  std::uint32_t row = 0;  // index into StepPlan::rows
  base::SlotId slot;
  std::uint32_t slot_generation = 0;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;  // of the token being drawn
};

// What neighbouring rows say about tokens of the prompt that are known already: the i-th row about
// the i-th token.
struct ScoreRequest {
  std::uint32_t first_row = 0;  // index into StepPlan::rows
  base::SlotId slot;
  std::uint32_t slot_generation = 0;
  std::uint32_t first_position = 0;  // of the first token
  Range tokens;                      // in StepPlan::tokens; as many rows
};

struct BlockZero {
  base::KvGroupId group;
  base::BlockId block;
};

// Copies the first num_slots token slots; the rest of the target was zeroed before.
struct BlockCopy {
  base::KvGroupId group;
  base::BlockId source;
  base::BlockId target;
  std::uint32_t num_slots = 0;
};

// Zeros and copies take effect in this order, on the one stream, before the step's forward pass.
struct MemoryEffect {
  enum class Kind : std::uint8_t { kZero, kCopy };
  Kind kind = Kind::kZero;
  std::uint32_t index = 0;  // into zeros or copies
};

// One step, as plain data without pointers: it can be logged, replayed, sent. Owned by the
// scheduler, which reserves every array for its bound at start; valid until the TryPlan after the
// next max_in_flight ones.
struct StepPlan {
  base::JobId job;
  std::vector<base::SlotId> closed;
  std::vector<SlotOpening> opened;
  std::vector<WorkItem> work;
  std::vector<LogitRow> rows;
  std::vector<SampleRequest> samples;
  std::vector<ScoreRequest> scores;  // at most one per work item, in their order
  std::vector<BlockAppend> block_appends;
  std::vector<BlockZero> zeros;
  std::vector<BlockCopy> copies;
  std::vector<MemoryEffect> memory_effects;
  std::vector<PlanToken> plan_tokens;
  std::vector<base::TokenId> tokens;
  std::vector<base::LogitBias> logit_bias;
  std::vector<std::uint32_t> allowed_words;

  std::span<const PlanToken> TokensOf(const WorkItem& item) const {
    return std::span(plan_tokens).subspan(item.tokens.begin, item.tokens.count);
  }
  void Clear();
};

// What one SampleRequest gave.
struct SampleResult {
  base::SlotId slot;
  std::uint32_t slot_generation = 0;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;  // of the first token
  Range tokens;                // in StepResult::tokens; 0 ... k + 1 of them
  Range scores;                // in StepResult::scores: of each token, or none
  // False: the row had a NaN or infinity, no token is valid. Finite and without a token: the
  // request's own masks left nothing to draw.
  bool finite = true;
};

// What one ScoreRequest gave.
struct ScoreResult {
  base::SlotId slot;
  std::uint32_t slot_generation = 0;
  std::uint32_t first_position = 0;
  Range scores;        // in StepResult::scores, one per token
  bool finite = true;  // false: a row had a NaN or infinity, none is valid
};

// In the orders of StepPlan::samples and StepPlan::scores.
struct StepResult {
  base::JobId job;
  std::vector<SampleResult> samples;
  std::vector<ScoreResult> prompt_scores;
  std::vector<base::TokenId> tokens;
  std::vector<base::TokenScore> scores;
  std::vector<base::TokenLogprob> alternatives;  // of the scores
};

}  // namespace pagoda::scheduler
