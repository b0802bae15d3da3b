#include "tests/simulation/decision_hash.h"

namespace pagoda::simulation {

void DecisionHash::AddPlan(const scheduler::StepPlan& plan) {
  Add(plan.job.value());
  for (const base::SlotId slot : plan.closed) Add(slot.value());
  for (const scheduler::SlotOpening& opening : plan.opened) {
    Add(opening.slot.value());
    Add(opening.slot_generation);
    Add(opening.history);
  }
  for (const scheduler::WorkItem& item : plan.work) {
    Add(item.slot.value());
    Add(item.first_position);
    Add(item.tokens);
    Add(item.num_without_kv);
    Add(item.appended_blocks);
  }
  for (const scheduler::LogitRow& row : plan.rows) Add(std::uint64_t{row.work} << 32 | row.offset);
  for (const scheduler::SampleRequest& sample : plan.samples) {
    Add(sample.row);
    Add(sample.slot.value());
    Add(sample.choice);
    Add(sample.position);
  }
  for (const scheduler::ScoreRequest& score : plan.scores) {
    Add(score.first_row);
    Add(score.first_position);
    Add(score.tokens);
  }
  for (const scheduler::BlockAppend& append : plan.block_appends) {
    Add(append.block.value());
    Add(static_cast<std::uint32_t>(append.replace_index));
  }
  for (const scheduler::MemoryEffect& effect : plan.memory_effects) {
    if (effect.kind == scheduler::MemoryEffect::Kind::kZero) {
      Add(plan.zeros[effect.index].block.value());
      continue;
    }
    const scheduler::BlockCopy& copy = plan.copies[effect.index];
    Add(copy.source.value());
    Add(copy.target.value());
    Add(copy.num_slots);
  }
  for (const scheduler::PlanToken& token : plan.plan_tokens) {
    Add(token.last_of_slot ? ~std::uint64_t{0} : token.value);
  }
  for (const base::TokenId token : plan.tokens) Add(token);
}

void DecisionHash::AddEnd(const scheduler::FinishEvent& event) {
  Add(event.request.id.value());
  Add(static_cast<std::uint64_t>(event.reason));
  for (const scheduler::Choice& choice : event.request.choices()) {
    for (const base::TokenId token : choice.tokens) Add(token);
  }
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

}  // namespace pagoda::simulation
