#include "engine/decision_digest.h"

namespace pagoda::engine {

void DecisionDigest::AddPlan(const scheduler::StepPlan& plan) {
  Add(plan.job.value());
  for (const base::SlotId slot : plan.closed) Add(slot.value());
  for (const scheduler::SlotOpening& opening : plan.opened) {
    Add(opening.slot.value(), opening.slot_generation);
    Add(opening.num_prompt_tokens, opening.history.count);
  }
  for (const scheduler::WorkItem& item : plan.work) {
    Add(item.slot.value(), item.first_position);
    Add(item.tokens.count, item.num_without_kv);
    Add(item.appended_blocks.begin, item.appended_blocks.count);
  }
  for (const scheduler::LogitRow& row : plan.rows) Add(row.work, row.offset);
  for (const scheduler::SampleRequest& sample : plan.samples) {
    Add(sample.row, sample.slot.value());
    Add(sample.choice, sample.position);
  }
  for (const scheduler::ScoreRequest& score : plan.scores) {
    Add(score.first_row, score.first_position);
    Add(score.tokens.count);
  }
  for (const scheduler::BlockAppend& append : plan.block_appends) {
    Add(append.block.value(), static_cast<std::uint32_t>(append.replace_index));
  }
  for (const scheduler::MemoryEffect& effect : plan.memory_effects) {
    if (effect.kind == scheduler::MemoryEffect::Kind::kZero) {
      Add(plan.zeros[effect.index].block.value());
      continue;
    }
    const scheduler::BlockCopy& copy = plan.copies[effect.index];
    Add(copy.source.value(), copy.target.value());
    Add(copy.num_slots);
  }
}

void DecisionDigest::AddEnd(const scheduler::FinishEvent& event) {
  Add(event.request.id.value());
  Add(static_cast<std::uint64_t>(event.reason));
  for (const scheduler::Choice& choice : event.request.choices()) Add(choice.tokens.size());
  const scheduler::Receipt& receipt = event.receipt;
  for (const std::int32_t count : {receipt.cached_tokens, receipt.generated_tokens,
                                   receipt.discarded_tokens, receipt.preemptions}) {
    Add(static_cast<std::uint32_t>(count));
  }
  for (const std::int64_t count :
       {receipt.queue_steps, receipt.prefill_steps, receipt.decode_steps, receipt.blocks_touched,
        receipt.blocks_reused, receipt.blocks_peak, receipt.block_steps}) {
    Add(static_cast<std::uint64_t>(count));
  }
}

}  // namespace pagoda::engine
