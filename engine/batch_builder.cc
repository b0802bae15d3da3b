#include "engine/batch_builder.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"

// A plan is applied in this order: rows closed, rows opened (so that a row may change hands inside
// one plan), then per work item its table differences and its tokens.

namespace pagoda::engine {

using scheduler::StepPlan;
using scheduler::WorkItem;

BatchBuilder::BatchBuilder(const BatchLimits& limits)
    : limits_(limits), max_blocks_(base::DivUp(limits.max_model_len, limits.block_size)) {
  PAGODA_CHECK(limits.num_kv_groups > 0 && limits.block_size > 0 && limits.max_num_seqs > 0);
  PAGODA_CHECK(limits.max_num_batched_tokens > 0 && limits.max_logit_rows > 0);
  PAGODA_CHECK(limits.max_model_len > 0);
  const auto num_rows = static_cast<std::size_t>(limits.max_num_seqs);
  const auto num_groups = static_cast<std::size_t>(limits.num_kv_groups);
  rows_.resize(num_rows);
  tables_.resize(num_rows * num_groups * static_cast<std::size_t>(max_blocks_));
  table_lengths_.resize(num_rows * num_groups);
  tokens_.reserve(static_cast<std::size_t>(limits.max_num_batched_tokens));
  sequences_.resize(num_rows);
  for (model::SequenceInput& sequence : sequences_) sequence.block_tables.resize(num_groups);
  logit_rows_.reserve(static_cast<std::size_t>(limits.max_logit_rows));
}

const model::ModelInput& BatchBuilder::Build(const StepPlan& plan) {
  tokens_.clear();
  logit_rows_.clear();
  num_sequences_ = 0;
  for (const base::SlotId slot : plan.closed) Close(slot);
  for (const scheduler::SlotOpening& opening : plan.opened) {
    Open(opening, std::span(plan.tokens).subspan(opening.history.begin, opening.history.count));
  }
  for (const WorkItem& item : plan.work) {
    ApplyBlocks(plan, item);
    AddSequence(plan, item);
  }
  for (const scheduler::LogitRow& row : plan.rows) {
    PAGODA_CHECK(row.work < num_sequences_);
    const model::SequenceInput& sequence = sequences_[row.work];
    PAGODA_CHECK(row.offset < static_cast<std::uint32_t>(sequence.num_tokens));
    logit_rows_.push_back(sequence.first_row + static_cast<std::int32_t>(row.offset));
  }
  PAGODA_CHECK(std::ssize(logit_rows_) <= limits_.max_logit_rows);
  input_ = {.tokens = tokens_,
            .sequences = std::span(sequences_).first(num_sequences_),
            .logit_rows = logit_rows_};
  return input_;
}

void BatchBuilder::SetLastToken(base::SlotId slot, base::TokenId token) {
  Row& row = rows_[slot.value()];
  PAGODA_CHECK(row.open);
  row.last_token = token;
}

std::span<const std::uint32_t> BatchBuilder::BlockTable(base::SlotId slot,
                                                        base::KvGroupId group) const {
  const std::size_t index = TableIndex(slot, group);
  return std::span(tables_).subspan(index * static_cast<std::size_t>(max_blocks_),
                                    static_cast<std::size_t>(table_lengths_[index]));
}

// A row that is open already is left over from a failed step.
void BatchBuilder::Open(const scheduler::SlotOpening& opening,
                        std::span<const base::TokenId> history) {
  PAGODA_CHECK(opening.slot.value() < rows_.size());
  PAGODA_CHECK(!history.empty());
  Close(opening.slot);
  rows_[opening.slot.value()] = {.open = true, .last_token = history.back()};
}

void BatchBuilder::Close(base::SlotId slot) {
  PAGODA_CHECK(slot.value() < rows_.size());
  rows_[slot.value()] = {};
  for (std::int32_t g = 0; g < limits_.num_kv_groups; ++g) {
    table_lengths_[TableIndex(slot, base::KvGroupId(static_cast<std::uint32_t>(g)))] = 0;
  }
}

void BatchBuilder::ApplyBlocks(const StepPlan& plan, const WorkItem& item) {
  PAGODA_CHECK(item.slot.value() < rows_.size());
  PAGODA_CHECK(rows_[item.slot.value()].open);
  const auto appends =
      std::span(plan.block_appends).subspan(item.appended_blocks.begin, item.appended_blocks.count);
  for (const scheduler::BlockAppend& append : appends) {
    PAGODA_CHECK(append.block != base::kNullBlock);
    const std::size_t table = TableIndex(item.slot, append.group);
    std::int32_t& length = table_lengths_[table];
    std::int32_t entry = append.replace_index;
    if (entry < 0) {
      PAGODA_CHECK(length < max_blocks_);
      entry = length++;
    }
    PAGODA_CHECK(entry < length);
    tables_[table * static_cast<std::size_t>(max_blocks_) + static_cast<std::size_t>(entry)] =
        append.block.value();
  }
}

void BatchBuilder::AddSequence(const StepPlan& plan, const WorkItem& item) {
  PAGODA_CHECK(num_sequences_ < sequences_.size());
  PAGODA_CHECK(item.tokens.count > 0);
  PAGODA_CHECK(item.num_without_kv <= item.tokens.count);
  model::SequenceInput& sequence = sequences_[num_sequences_++];
  sequence.slot = item.slot;
  sequence.first_row = static_cast<std::int32_t>(tokens_.size());
  sequence.num_tokens = static_cast<std::int32_t>(item.tokens.count);
  sequence.first_position = static_cast<std::int32_t>(item.first_position);
  sequence.num_without_kv = static_cast<std::int32_t>(item.num_without_kv);
  const std::int32_t context = sequence.first_position + sequence.num_tokens;
  for (std::size_t g = 0; g < sequence.block_tables.size(); ++g) {
    sequence.block_tables[g] =
        BlockTable(item.slot, base::KvGroupId(static_cast<std::uint32_t>(g)));
    PAGODA_CHECK(context <= std::ssize(sequence.block_tables[g]) * limits_.block_size);
  }
  PAGODA_CHECK(tokens_.size() + item.tokens.count <= tokens_.capacity());
  for (const scheduler::PlanToken& token : plan.TokensOf(item)) {
    tokens_.push_back(ValueOf(token, item.slot));
  }
}

base::TokenId BatchBuilder::ValueOf(const scheduler::PlanToken& token, base::SlotId slot) const {
  return token.last_of_slot ? rows_[slot.value()].last_token : token.value;
}

std::size_t BatchBuilder::TableIndex(base::SlotId slot, base::KvGroupId group) const {
  PAGODA_CHECK(group.value() < static_cast<std::uint32_t>(limits_.num_kv_groups));
  return std::size_t{slot.value()} * static_cast<std::size_t>(limits_.num_kv_groups) +
         group.value();
}

}  // namespace pagoda::engine
