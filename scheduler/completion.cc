// A result is taken by the position of its token, whatever has become of the request since its job
// was planned:
//   position == known tokens   the next token, also of a request that was preempted meanwhile
//   position <  known tokens   drawn twice after a preemption; the same token, and dropped
//   position >  known tokens   cannot be, as jobs complete in order
#include "scheduler/completion.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "scheduler/forking.h"
#include "scheduler/lifecycle.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {
namespace {

// The item's sequence runs as it did when the item was planned.
bool IsCurrent(const SchedulerState& state, const DraftItem& item) {
  const Slot& slot = state.slots[item.slot.value()];
  return slot.request != Slot::kNobody && slot.generation == item.slot_generation;
}

// The item's request is live, and its choice open: what runs is both.
bool IsOpen(const SchedulerState& state, const DraftItem& item) {
  if (IsCurrent(state, item)) return true;
  const LiveRequest& live = state.requests[item.place];
  return live.phase != LiveRequest::Phase::kVacant && live.request->id == item.request &&
         live.request->choice(item.choice).is_open();
}

// What a step gave for one item; null where it gave nothing of the kind.
struct ItemResult {
  const SampleResult* sample = nullptr;
  const SampleOutcome* outcome = nullptr;
  const ScoreResult* score = nullptr;
};

// What runs is told by its sequence, so that in a full batch nobody looks elsewhere.
void NoteTokens(SchedulerState& state, RequestIndex index, const Choice& choice,
                std::int32_t num_accepted) {
  Sequence* sequence = choice.slot.has_value() ? &state.SequenceIn(*choice.slot) : nullptr;
  if (sequence != nullptr) {
    sequence->num_known = choice.num_known();
    sequence->num_expected = std::max(sequence->num_expected, sequence->num_known);
    sequence->newest_token = choice.tokens.back();
  }
  if (sequence == nullptr || sequence->began_after_failure) {
    state.requests[index].num_failures = 0;
  }
  Tenant& tenant =
      sequence != nullptr ? state.TenantOf(*sequence) : state.TenantOf(state.requests[index]);
  tenant.counts.generated_tokens += num_accepted;
  state.counters.generated_tokens += num_accepted;
}

std::int32_t MaxLengthOf(const SchedulerState& state, RequestIndex index, const Choice& choice) {
  if (choice.slot.has_value()) return state.SequenceIn(*choice.slot).max_length;
  const NewRequest& request = *state.requests[index].request;
  return request.prompt_length() + request.max_tokens();
}

// What the engine decided about the tokens of a sample of `item`'s choice.
void AcceptTokens(SchedulerState& state, const DraftItem& item, Choice& choice,
                  std::span<const base::TokenId> tokens, const SampleOutcome& outcome) {
  const RequestIndex index = item.place;
  PAGODA_CHECK(outcome.num_accepted <= tokens.size());
  PAGODA_CHECK(outcome.num_accepted > 0 || outcome.finish.has_value());
  for (const base::TokenId token : tokens.first(outcome.num_accepted)) {
    PAGODA_CHECK(choice.tokens.size() < choice.tokens.capacity());
    choice.tokens.push_back(token);
  }
  NoteTokens(state, index, choice, static_cast<std::int32_t>(outcome.num_accepted));
  const auto num_discarded = static_cast<std::int32_t>(tokens.size() - outcome.num_accepted);
  if (num_discarded > 0) state.requests[index].receipt.discarded_tokens += num_discarded;
  PAGODA_CHECK_MSG(
      outcome.finish.has_value() || choice.num_known() < MaxLengthOf(state, index, choice),
      "a request reached max_tokens and was not ended");
  if (!outcome.finish.has_value()) return;
  // The caller's masks do not fit the model: that is the whole request's end.
  if (*outcome.finish == FinishReason::kNothingAllowed) return End(state, index, *outcome.finish);
  EndChoice(state, index, item.choice, *outcome.finish);
}

// A sample of an open choice. `outcome` is what the engine decided about its tokens.
void TakeSample(SchedulerState& state, const DraftItem& item, const SampleResult& sample,
                std::span<const base::TokenId> tokens, const SampleOutcome& outcome) {
  Choice& choice = IsCurrent(state, item) ? state.ChoiceOf(state.SequenceIn(item.slot))
                                          : state.requests[item.place].request->choice(item.choice);
  const auto position = static_cast<std::int32_t>(sample.position);
  PAGODA_CHECK_MSG(position <= choice.num_known(), "a result leaves a gap in the tokens");
  if (position == choice.num_known()) {
    AcceptTokens(state, item, choice, tokens, outcome);
    return;
  }
  PAGODA_CHECK(!tokens.empty());
  PAGODA_CHECK_MSG(choice.tokens[sample.position] == tokens.front(),
                   "a token drawn again after a preemption differs");
}

// What the jobs in flight of a preempted request gave counts like any other.
void TakeScores(LiveRequest& live, const ScoreResult& score) {
  const auto first = static_cast<std::int32_t>(score.first_position);
  const auto end = first + static_cast<std::int32_t>(score.scores.count);
  PAGODA_CHECK_MSG(first <= live.num_scored, "a result leaves a gap in the prompt's scores");
  live.num_scored = std::max(live.num_scored, end);
}

void CompleteItem(SchedulerState& state, const DraftItem& item, const StepResult& result,
                  const ItemResult& of_item) {
  const auto [sample, outcome, score] = of_item;
  if (!IsOpen(state, item)) return;
  const bool is_current = IsCurrent(state, item);
  if (score != nullptr) {
    if (!score->finite) return End(state, item.place, FinishReason::kNonFinite);
    TakeScores(state.requests[item.place], *score);
  }
  if (PAGODA_MUTANT(kNotFiniteIsSealed) && sample != nullptr && !sample->finite && is_current &&
      !item.row_of.has_value()) {
    SealComputed(state, state.SequenceIn(item.slot), item.end());
  }
  if (sample != nullptr && !sample->finite) {
    // Nothing of this step is sealed: its KV may be as wrong as its logits.
    const Choice& choice = state.requests[item.place].request->choice(item.choice);
    const bool is_next = static_cast<std::int32_t>(sample->position) == choice.num_known();
    if (is_next || is_current) End(state, item.place, FinishReason::kNonFinite);
    return;
  }
  if (is_current && !item.row_of.has_value()) {
    Sequence& sequence = state.SequenceIn(item.slot);
    SealComputed(state, sequence, item.end());
    if (sequence.has_siblings) ForkWaiting(state, sequence);
  }
  if (sample == nullptr) return;
  const auto tokens = std::span<const base::TokenId>(result.tokens)
                          .subspan(sample->tokens.begin, sample->tokens.count);
  TakeSample(state, item, *sample, tokens, *outcome);
}

// The tokens of a choice are three hops away from its item. In a full batch each hop is asked for
// while items before it are completed.
void FetchAhead(SchedulerState& state, std::span<const DraftItem> items, std::size_t index) {
  constexpr std::size_t kSequence = 40, kChoice = 24, kTokens = 12;  // items ahead
  if (index + kSequence < items.size()) state.FetchSequence(items[index + kSequence].slot);
  if (index + kChoice < items.size()) {
    __builtin_prefetch(state.SequenceIn(items[index + kChoice].slot).record, /*rw=*/1);
  }
  if (index + kTokens >= items.size()) return;
  const DraftItem& item = items[index + kTokens];
  if (!IsCurrent(state, item)) return;
  Sequence& sequence = state.SequenceIn(item.slot);
  const std::vector<base::TokenId>& tokens = state.ChoiceOf(sequence).tokens;
  __builtin_prefetch(tokens.data() + tokens.size(), /*rw=*/1);
  if (item.row_of.has_value() || item.end() % state.block_size() != 0) return;
  FetchForSeal(state, sequence, item.end() / state.block_size() - 1);
}

// Samples come in the order of the items that asked for them.
const SampleResult& SampleOf(const DraftItem& item, const StepResult& result, std::size_t index) {
  PAGODA_CHECK(index < result.samples.size());
  const SampleResult& sample = result.samples[index];
  PAGODA_CHECK(sample.slot == item.slot && sample.choice == item.choice);
  PAGODA_CHECK(sample.slot_generation == item.slot_generation);
  PAGODA_CHECK(static_cast<std::int32_t>(sample.position) == item.end());
  return sample;
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
  std::size_t next_score = 0;
  for (std::size_t i = 0; i < record->items.size(); ++i) {
    FetchAhead(state, record->items, i);
    const DraftItem& item = record->items[i];
    ItemResult of_item;
    if (item.samples) {
      of_item.sample = &SampleOf(item, result, next_sample);
      of_item.outcome = &outcomes[next_sample++];
    }
    if (next_score < result.prompt_scores.size() &&
        result.prompt_scores[next_score].slot == item.slot) {
      of_item.score = &result.prompt_scores[next_score++];
      PAGODA_CHECK(of_item.score->slot_generation == item.slot_generation);
    }
    CompleteItem(state, item, result, of_item);
  }
  PAGODA_CHECK(next_sample == result.samples.size());
  PAGODA_CHECK(next_score == result.prompt_scores.size());
}

void FailJob(SchedulerState& state, base::JobId job) {
  JobRecord* record = state.jobs.Find(job);
  PAGODA_CHECK_MSG(record != nullptr, "a job fails that is not in flight");
  if (record->phase == JobRecord::Phase::kVoid) return;
  PAGODA_CHECK_MSG(record == state.jobs.OldestInFlight(), "jobs fail out of order");
  for (std::size_t i = 0; i < state.jobs.size(); ++i) {
    JobRecord& later = state.jobs.at(i);
    if (later.phase != JobRecord::Phase::kInFlight) continue;
    if (PAGODA_MUTANT(kFailVoidsOne) && later.job != job) continue;
    state.jobs.Leave(later, JobRecord::Phase::kVoid);
    // What the plan closed may be open still: it is closed again by a later plan.
    const StepPlan& plan = state.plans[later.job.value() % state.plans.size()];
    if (PAGODA_MUTANT(kFailForgetsClosed)) continue;
    for (const base::SlotId slot : plan.closed) state.slots[slot.value()].is_open_on_device = true;
  }
  // A sequence that the void jobs worked on, or gave blocks, has nothing to go on from.
  state.snapshot = state.running;
  for (const base::SlotId slot : state.snapshot) {
    if (!state.IsRunning(slot)) continue;  // another of its request's sequences came before
    const Sequence& sequence = state.SequenceIn(slot);
    const base::JobId handed =
        PAGODA_MUTANT(kFailForgetsHandOuts) ? base::kNoJob : sequence.last_handed_job;
    if (std::max(sequence.last_job, handed) >= job) {
      RollBack(state, sequence.request);
    }
  }
}

std::optional<ScorePlace> PlaceOfScore(const SchedulerState& state, const ScoreResult& score) {
  const JobRecord* record = state.jobs.OldestInFlight();
  if (record == nullptr) return std::nullopt;
  const DraftItem* item = record->ItemOf(score.slot, score.slot_generation);
  if (item == nullptr) return std::nullopt;
  if (!IsOpen(state, *item)) return std::nullopt;
  const auto next = static_cast<std::uint32_t>(state.requests[item->place].num_scored);
  if (next >= score.first_position + score.scores.count) return std::nullopt;
  return ScorePlace{.request = item->request, .next_position = next};
}

std::optional<base::RequestId> RequestForSample(const SchedulerState& state,
                                                const SampleResult& sample) {
  const JobRecord* record = state.jobs.OldestInFlight();
  if (record == nullptr) return std::nullopt;
  const DraftItem* item = record->ItemOf(sample.slot, sample.slot_generation);
  if (item == nullptr || !item->samples) return std::nullopt;
  if (!IsOpen(state, *item)) return std::nullopt;
  const std::int32_t num_known =
      IsCurrent(state, *item)
          ? state.SequenceIn(item->slot).num_known
          : state.requests[item->place].request->choice(item->choice).num_known();
  if (static_cast<std::int32_t>(sample.position) != num_known) return std::nullopt;
  return item->request;
}

}  // namespace pagoda::scheduler
