#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "model/model.h"
#include "scheduler/step_plan.h"

namespace pagoda::engine {

// Bounds of every step; the arrays are reserved for them.
struct BatchLimits {
  std::int32_t num_kv_groups = 1;
  std::int32_t block_size = 16;
  std::int32_t max_num_seqs = 0;
  std::int32_t max_num_batched_tokens = 0;
  std::int32_t max_logit_rows = 0;
  std::int32_t max_model_len = 0;
};

// Turns a plan into the model's input. Keeps what a plan does not repeat: the block tables of every
// open slot, which plans change by differences, and the newest token of every slot.
// Owner: ModelExecutor. Threads: the engine thread. Nothing allocates after construction.
// Invariant: a slot's tables cover every position that its work items have had since it was opened.
class BatchBuilder {
 public:
  explicit BatchBuilder(const BatchLimits& limits);

  // Requires: plans come in the order of their jobs. The result is valid until the next Build.
  const model::ModelInput& Build(const scheduler::StepPlan& plan);

  // What later plans mean by "last of slot".
  void SetLastToken(base::SlotId slot, base::TokenId token);

  bool IsOpen(base::SlotId slot) const { return rows_[slot.value()].open; }
  // The blocks of `slot` in `group`, oldest position first.
  std::span<const std::uint32_t> BlockTable(base::SlotId slot, base::KvGroupId group) const;

 private:
  struct Row {
    bool open = false;
    base::TokenId last_token = 0;
  };

  void Open(const scheduler::SlotOpening& opening, std::span<const base::TokenId> history);
  void Close(base::SlotId slot);
  void ApplyBlocks(const scheduler::StepPlan& plan, const scheduler::WorkItem& item);
  void AddSequence(const scheduler::StepPlan& plan, const scheduler::WorkItem& item);
  base::TokenId ValueOf(const scheduler::PlanToken& token, base::SlotId slot) const;
  std::size_t TableIndex(base::SlotId slot, base::KvGroupId group) const;

  const BatchLimits limits_;
  const std::int32_t max_blocks_;  // of one slot in one group

  std::vector<Row> rows_;                    // [S]
  std::vector<std::uint32_t> tables_;        // [S, groups, max_blocks_]
  std::vector<std::int32_t> table_lengths_;  // [S, groups]

  std::vector<base::TokenId> tokens_;
  std::vector<model::SequenceInput>
      sequences_;  // all built at start; the first num_sequences_ count
  std::size_t num_sequences_ = 0;
  std::vector<std::int32_t> logit_rows_;
  model::ModelInput input_;
};

}  // namespace pagoda::engine
