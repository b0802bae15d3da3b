#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bits.h"

namespace pagoda::scheduler {

// What one work item costs in attention: chunks of 64 query rows x 256 context tokens, whole ones.
constexpr std::int64_t AttentionChunks(std::int32_t first_position, std::int32_t num_tokens) {
  constexpr std::int32_t kChunkRows = 64;
  constexpr std::int32_t kChunkContext = 256;
  if (num_tokens <= 0) return 0;
  return std::int64_t{base::DivUp(num_tokens, kChunkRows)} *
         base::DivUp(first_position + num_tokens, kChunkContext);
}

// What is left of a step's bounds while its plan is made.
struct StepBudget {
  std::int32_t tokens = 0;
  std::int32_t logit_rows = 0;
  std::int64_t attention_chunks = 0;

  constexpr void Spend(const StepBudget& cost) {
    tokens -= cost.tokens;
    logit_rows -= cost.logit_rows;
    attention_chunks -= cost.attention_chunks;
  }
};

// The stretch of one sequence that a plan already covers; empty at the start.
struct PlannedStretch {
  std::int32_t first_position = 0;
  std::int32_t num_tokens = 0;
};

// Positions of a prompt whose rows are wanted for what they say about the next token: begin ... end
// - 1.
struct ScoredRows {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  constexpr std::int32_t Within(std::int32_t first_position, std::int32_t num_tokens) const {
    return std::max(0,
                    std::min(first_position + num_tokens, end) - std::max(first_position, begin));
  }
};

// How many of the next `gap` tokens after `stretch` fit the budget. Less than the whole gap ends on
// a block boundary, and the whole gap needs a logit row, so 0 is a possible answer. A stretch with
// scored rows ends anywhere: rows may be fewer than a block.
constexpr std::int32_t FittingTokens(const PlannedStretch& stretch, std::int32_t gap,
                                     std::int32_t block_size, const StepBudget& budget,
                                     const ScoredRows& scored = {}) {
  const std::int32_t from = stretch.first_position + stretch.num_tokens;
  const auto align = [&](std::int32_t count) {
    if (count >= gap) return gap;
    if (scored.end > from) return std::max(0, count);
    return std::max(0, (from + count) / block_size * block_size - from);
  };
  std::int32_t count = align(std::min(gap, budget.tokens));
  while (count > 0 && scored.Within(from, count) + (count == gap) > budget.logit_rows) {
    count = align(count - 1);
  }
  const std::int64_t before = AttentionChunks(stretch.first_position, stretch.num_tokens);
  while (count > 0 && AttentionChunks(stretch.first_position, stretch.num_tokens + count) - before >
                          budget.attention_chunks) {
    count = align(count - 1);
  }
  return count;
}

}  // namespace pagoda::scheduler
