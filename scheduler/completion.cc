// A result is taken by the position of its token, whatever has become of the request since its job
// was planned:
//   position == known tokens   the next token, also of a request that was preempted meanwhile
//   position <  known tokens   drawn twice after a preemption; it must be the same token, and is
//   dropped position >  known tokens   cannot be, as jobs complete in order
#include "scheduler/completion.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "scheduler/lifecycle.h"

namespace pagoda::scheduler {
namespace {

// The live request of an item, or none.
std::optional<SequenceIndex> LiveRequestOf(const SchedulerState& state, const DraftItem& item) {
  const Sequence& sequence = state.sequences[item.sequence];
  if (sequence.phase == Sequence::Phase::kVacant || sequence.request->id != item.request) {
    return std::nullopt;
  }
  return item.sequence;
}

bool IsCurrent(const Sequence& sequence, const DraftItem& item) {
  return sequence.is_running() && sequence.incarnation == item.incarnation;
}

void AcceptTokens(SchedulerState& state, SequenceIndex index, std::span<const base::TokenId> tokens,
                  const SampleOutcome& outcome) {
  Sequence& sequence = state.sequences[index];
  PAGODA_CHECK(outcome.num_accepted <= tokens.size());
  PAGODA_CHECK(outcome.num_accepted > 0 || outcome.finish.has_value());
  for (const base::TokenId token : tokens.first(outcome.num_accepted)) {
    auto& known = sequence.request->tokens();
    PAGODA_CHECK(known.size() < known.capacity());
    known.push_back(token);
  }
  state.counters.generated_tokens += outcome.num_accepted;
  sequence.receipt.discarded_tokens +=
      static_cast<std::int32_t>(tokens.size() - outcome.num_accepted);
  sequence.num_failures = 0;
  if (sequence.is_running()) {
    sequence.num_expected = std::max(sequence.num_expected, sequence.num_known());
  }
  PAGODA_CHECK_MSG(outcome.finish.has_value() || sequence.num_known() < sequence.max_length(),
                   "a request reached max_tokens and was not ended");
  if (outcome.finish.has_value()) End(state, index, *outcome.finish);
}

// A sample of a live request. `outcome` is what the engine decided about its tokens.
void TakeSample(SchedulerState& state, SequenceIndex index, const SampleResult& sample,
                std::span<const base::TokenId> tokens, const SampleOutcome& outcome) {
  const Sequence& sequence = state.sequences[index];
  const auto position = static_cast<std::int32_t>(sample.position);
  PAGODA_CHECK_MSG(position <= sequence.num_known(), "a result leaves a gap in the tokens");
  if (position == sequence.num_known()) {
    AcceptTokens(state, index, tokens, outcome);
    return;
  }
  PAGODA_CHECK(!tokens.empty());
  PAGODA_CHECK_MSG(sequence.request->tokens()[sample.position] == tokens.front(),
                   "a token drawn again after a preemption differs");
}

void CompleteItem(SchedulerState& state, const DraftItem& item, const StepResult& result,
                  const SampleResult* sample, const SampleOutcome* outcome) {
  const auto index = LiveRequestOf(state, item);
  if (!index.has_value()) return;
  Sequence& sequence = state.sequences[*index];
  if (sample != nullptr && !sample->finite) {
    // Nothing of this step is sealed: its KV may be as wrong as its logits.
    const bool is_next = static_cast<std::int32_t>(sample->position) == sequence.num_known();
    if (is_next || IsCurrent(sequence, item)) End(state, *index, FinishReason::kNonFinite);
    return;
  }
  if (IsCurrent(sequence, item)) SealComputed(state, sequence, item.end());
  if (sample == nullptr) return;
  const auto tokens = std::span<const base::TokenId>(result.tokens)
                          .subspan(sample->tokens.begin, sample->tokens.count);
  TakeSample(state, *index, *sample, tokens, *outcome);
}

}  // namespace

void CompleteJob(SchedulerState& state, const StepResult& result,
                 std::span<const SampleOutcome> outcomes) {
  JobRecord* record = state.jobs.Find(result.job);
  PAGODA_CHECK_MSG(record != nullptr, "a job completes that is not in flight");
  if (record->phase == JobRecord::Phase::kVoid) return;
  PAGODA_CHECK_MSG(record == state.jobs.OldestInFlight(), "jobs complete out of order");
  PAGODA_CHECK(outcomes.size() == result.samples.size());
  state.jobs.Leave(*record, JobRecord::Phase::kDone);
  std::size_t next_sample = 0;
  for (const DraftItem& item : record->items) {
    const SampleResult* sample = nullptr;
    const SampleOutcome* outcome = nullptr;
    if (item.samples) {
      PAGODA_CHECK(next_sample < result.samples.size());
      sample = &result.samples[next_sample];
      outcome = &outcomes[next_sample++];
      PAGODA_CHECK(sample->slot == item.slot);
      PAGODA_CHECK(sample->slot_generation == item.slot_generation);
      PAGODA_CHECK(static_cast<std::int32_t>(sample->position) == item.end());
    }
    CompleteItem(state, item, result, sample, outcome);
  }
  PAGODA_CHECK(next_sample == result.samples.size());
}

void FailJob(SchedulerState& state, base::JobId job) {
  JobRecord* record = state.jobs.Find(job);
  PAGODA_CHECK_MSG(record != nullptr, "a job fails that is not in flight");
  if (record->phase == JobRecord::Phase::kVoid) return;
  PAGODA_CHECK_MSG(record == state.jobs.OldestInFlight(), "jobs fail out of order");
  for (std::size_t i = 0; i < state.jobs.size(); ++i) {
    JobRecord& later = state.jobs.at(i);
    if (later.phase != JobRecord::Phase::kInFlight) continue;
    state.jobs.Leave(later, JobRecord::Phase::kVoid);
    // What the plan closed may be open still: it is closed again by a later plan.
    const StepPlan& plan = state.plans[later.job.value() % state.plans.size()];
    for (const base::SlotId slot : plan.closed) state.slots[slot.value()].is_open_on_device = true;
  }
  // A sequence that the void jobs worked on, or gave blocks, has nothing to go on from.
  state.snapshot = state.running;
  for (const SequenceIndex index : state.snapshot) {
    const Sequence& sequence = state.sequences[index];
    if (std::max(sequence.last_job, sequence.last_handed_job) >= job) RollBack(state, index);
  }
}

std::optional<base::RequestId> RequestForSample(const SchedulerState& state,
                                                const SampleResult& sample) {
  const JobRecord* record = state.jobs.OldestInFlight();
  if (record == nullptr) return std::nullopt;
  const DraftItem* item = record->ItemOf(sample.slot, sample.slot_generation);
  if (item == nullptr || !item->samples) return std::nullopt;
  const auto index = LiveRequestOf(state, *item);
  if (!index.has_value()) return std::nullopt;
  const Sequence& sequence = state.sequences[*index];
  if (static_cast<std::int32_t>(sample.position) != sequence.num_known()) return std::nullopt;
  return item->request;
}

}  // namespace pagoda::scheduler
