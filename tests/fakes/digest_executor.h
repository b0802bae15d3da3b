#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/executor.h"

namespace pagoda::fakes {

struct DigestOptions {
  std::vector<std::int32_t> pool_blocks_per_group = {0};
  std::int32_t block_size = 16;
  std::int32_t max_num_seqs = 0;
  std::int32_t max_model_len = 0;
  base::TokenId vocabulary_size = 0;  // tokens 0 ... vocabulary_size - 1 are drawn
  int max_in_flight = 1;
  // When a step's effects happen: as early, or as late, as the order of steps allows.
  enum class Timing : std::uint8_t { kAtSubmit, kAtAwait };
  Timing timing = Timing::kAtSubmit;
};

// Stands in for the model. Its KV pool holds one number per token slot, a digest of the token, its
// position and every number before it as read through the block table; a drawn token is a digest of
// all numbers of the context, the token history, the parameters and the position. So a block that
// is stale, foreign, missing, out of order or written too early changes tokens. The pool begins
// full of garbage, and slots behind the context must be zero: num_dirty_slots counts those that are
// not, and they change tokens too. Threads: one at a time.
class DigestExecutor final : public engine::Executor {
 public:
  explicit DigestExecutor(const DigestOptions& options);

  absl::Status Submit(const scheduler::StepPlan& plan) override;
  absl::StatusOr<const scheduler::StepResult*> Await() override;
  int max_in_flight() const override { return options_.max_in_flight; }

  // Leaves garbage wherever the step wrote, zeroed or copied to, and in the rows it used: what a
  // failed step may do.
  void Spoil(const scheduler::StepPlan& plan);

  std::int64_t num_dirty_slots() const { return num_dirty_slots_; }
  std::int64_t num_computed_tokens() const { return num_computed_tokens_; }

 private:
  struct Row {
    bool open = false;
    base::SamplingParams sampling;
    std::vector<base::TokenId> history;
    std::vector<std::vector<std::uint32_t>> tables;  // per group
  };

  void Execute(const scheduler::StepPlan& plan, scheduler::StepResult& result);
  void CheckMayDraw(const scheduler::SampleRequest& request, base::SlotId owner) const;
  void ApplyMemoryEffects(const scheduler::StepPlan& plan);
  void Open(const scheduler::StepPlan& plan, const scheduler::SlotOpening& opening);
  void SpoilBlock(base::KvGroupId group, base::BlockId block);
  void AppendBlocks(const scheduler::StepPlan& plan, const scheduler::WorkItem& item);
  void Compute(const scheduler::StepPlan& plan, const scheduler::WorkItem& item,
               std::span<std::uint64_t> digests);
  std::uint64_t DirtBehind(const Row& row, std::uint32_t context);
  void Score(const scheduler::StepPlan& plan, const scheduler::ScoreRequest& request,
             scheduler::StepResult& result) const;
  base::TokenId Draw(const scheduler::SampleRequest& request, std::uint64_t context_digest);
  std::uint64_t& Cell(std::size_t group, const Row& row, std::uint32_t position);

  const DigestOptions options_;
  std::vector<Row> rows_;
  std::vector<std::vector<std::uint64_t>> pool_;     // per group: [block, slot]
  std::vector<const scheduler::StepPlan*> waiting_;  // submitted and not executed
  std::vector<scheduler::StepResult> results_;       // reused in turn
  std::vector<std::vector<std::uint64_t>> digests_;  // per work item of the step: one per token
  std::int64_t num_submitted_ = 0;
  std::int64_t num_awaited_ = 0;
  std::int64_t num_dirty_slots_ = 0;
  std::int64_t num_computed_tokens_ = 0;
};

}  // namespace pagoda::fakes
