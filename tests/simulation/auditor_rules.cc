#include "base/bits.h"
#include "base/check.h"
#include "tests/simulation/auditor.h"

namespace pagoda::simulation {

using scheduler::BlockState;
using scheduler::LiveRequest;
using scheduler::RequestIndex;
using scheduler::Sequence;
using scheduler::StepPlan;

constexpr std::int64_t kPreemptionsBeforeRoom = 3;

// ---- What may be read

bool Auditor::IsWritten(const Book& book, std::uint32_t num_slots) const {
  return std::all_of(book.written_by.begin(), book.written_by.begin() + num_slots,
                     [&](base::JobId job) { return job != base::kNoJob && job <= ended_; });
}

// A block came into a table that was not handed out for it: a hit, an adoption, or the prompt of
// another choice.
void Auditor::CheckNewEntry(base::SlotId slot, std::int32_t index) {
  const Book& book = books_[state_.tables.at(slot, index).value()];
  if (book.prefix != kNobody) return CheckLaneEntry(slot, index);
  const LiveRequest& live = state_.RequestOf(state_.SequenceIn(slot));
  const std::uint32_t tenant = live.request->tenant.value();
  PAGODA_CHECK_MSG(book.tenant == tenant, "audit: a table names another tenant's block");
  PAGODA_CHECK_MSG(book.name_space == NamespaceOf(live),
                   "audit: a table names another namespace's block");
  PAGODA_CHECK_MSG(IsWritten(book, static_cast<std::uint32_t>(state_.config.block_size)),
                   "audit: a block is shared that is not yet written");
  PAGODA_CHECK_MSG(state_.pool.state(state_.tables.at(slot, index)) == BlockState::kSealed,
                   "audit: a block is shared that is not sealed");
  PAGODA_CHECK_MSG(
      !MustCompute(live, index) ||
          HasComputed(live.request->id.value() - 1, live.incarnation, index),
      "audit: a prompt that is to be computed whole has a block that it did not compute");
  if (live.request->num_choices() > 1) return;  // it may be another choice's
  PAGODA_CHECK_MSG(book.epoch == epochs_[tenant], "audit: a hit on what was flushed");
  const RequestScript& script = scenario_.requests[live.request->id.value() - 1];
  PAGODA_CHECK_MSG(!script.one_request_namespace, "audit: an anonymous request has a hit");
}

// By what its caller asked for. A prompt whose tokens are scored is computed whole until all have
// their score, so surely in its first stay; its first token has none.
bool Auditor::ComputesAll(const LiveRequest& live) const {
  const std::size_t place = live.request->id.value() - 1;
  const RequestScript& script = scenario_.requests[place];
  if (script.fields.skip_reading_prefix_cache.value_or(false)) return true;
  if (!script.fields.prompt_logprobs.has_value() || script.prompt.size() < 2) return false;
  const std::uint64_t first = own_work_[place].first_incarnation;
  return first == 0 || first == live.incarnation;
}

// For the sake of scores, all that stands before the last token of the prompt.
bool Auditor::MustCompute(const LiveRequest& live, std::int32_t table_index) const {
  if (!ComputesAll(live)) return false;
  const RequestScript& script = scenario_.requests[live.request->id.value() - 1];
  if (script.fields.skip_reading_prefix_cache.value_or(false)) return true;
  const auto num_rows = static_cast<std::int32_t>(script.prompt.size()) - 1;
  return table_index < num_rows / state_.config.block_size;
}

bool Auditor::HasComputed(std::size_t script, std::uint64_t incarnation,
                          std::int32_t table_index) const {
  const OwnWork& work = own_work_[script];
  const auto index = static_cast<std::size_t>(table_index);
  return work.incarnation == incarnation && index < work.has_whole_blocks.size() &&
         work.has_whole_blocks[index];
}

// From the tables as they were seen last: a block that is complete now may have been replaced by an
// equal one, and its sequence may have ended, in the call that is looked at.
void Auditor::NoteOwnWork() {
  for (const SeenTable& seen : tables_) {
    if (!seen.computes_all) continue;
    OwnWork& work = own_work_[seen.script];
    if (seen.incarnation < work.incarnation) continue;
    if (seen.incarnation > work.incarnation) work.has_whole_blocks.clear();
    work.incarnation = seen.incarnation;
    if (work.first_incarnation == 0) work.first_incarnation = seen.incarnation;
    work.has_whole_blocks.resize(std::max(work.has_whole_blocks.size(), seen.blocks.size()));
    for (std::size_t i = 0; i < seen.blocks.size(); ++i) {
      const Book& book = books_[seen.blocks[i]];
      const bool is_own = seen.blocks[i] != 0 && book.incarnation == seen.incarnation;
      if (is_own && IsWritten(book, static_cast<std::uint32_t>(state_.config.block_size))) {
        work.has_whole_blocks[i] = true;
      }
    }
  }
}

void Auditor::CheckCopy(const scheduler::BlockCopy& copy, const StepPlan& plan) {
  const Book& source = books_[copy.source.value()];
  Book& target = books_[copy.target.value()];
  PAGODA_CHECK_MSG(target.prefix == kNobody, "audit: a copy writes into the public lane");
  if (source.prefix != kNobody) {
    CheckLaneCopy(copy);
  } else {
    PAGODA_CHECK_MSG(source.tenant == target.tenant && source.name_space == target.name_space,
                     "audit: a copy reads another namespace's block");
  }
  if (target.computes_all && source.incarnation != target.incarnation) {
    const bool is_own =
        source.prefix == kNobody && target.holder != kNobody &&
        HasComputed(tables_[target.holder].script, target.incarnation, target.table_index);
    PAGODA_CHECK_MSG(is_own, "audit: a prompt that is to be computed whole is copied in part");
  }
  PAGODA_CHECK_MSG(IsWritten(source, copy.num_slots),
                   "audit: a copy reads what is not yet written");
  PAGODA_CHECK(copy.num_slots > 0);
  PAGODA_CHECK(copy.num_slots < static_cast<std::uint32_t>(state_.config.block_size));
  PAGODA_CHECK_MSG(source.named_by != plan.job || source.num_holders > 0,
                   "audit: a copy reads a block that the plan has handed out before");
  for (std::uint32_t i = 0; i < copy.num_slots; ++i) target.written_by[i] = plan.job;
  target.named_by = plan.job;
}

// ---- What may be written

void Auditor::CheckItem(const StepPlan& plan, const scheduler::WorkItem& item) {
  const std::int32_t block_size = state_.config.block_size;
  const std::uint32_t slot = item.slot.value();
  PAGODA_CHECK(!has_item_[slot]);
  has_item_[slot] = true;
  const auto first = static_cast<std::int32_t>(item.first_position);
  const auto from = first + static_cast<std::int32_t>(item.num_without_kv);
  const auto end = first + static_cast<std::int32_t>(item.tokens.count);
  for (std::int32_t position = first; position < end; ++position) {
    const base::BlockId block = state_.tables.at(item.slot, position / block_size);
    Book& book = books_[block.value()];
    const BlockState block_state = state_.pool.state(block);
    if (position < from) {
      PAGODA_CHECK_MSG(scheduler::IsReadOnly(block_state), "audit: a slot is not filled");
      continue;
    }
    PAGODA_CHECK_MSG(block_state == BlockState::kOwned && book.holder == slot,
                     "audit: a block is written that is not its sequence's alone");
    book.written_by[static_cast<std::size_t>(position % block_size)] = plan.job;
  }
  const bool samples = std::ranges::find(plan.samples, item.slot,
                                         &scheduler::SampleRequest::slot) != plan.samples.end();
  const LiveRequest& live = state_.RequestOf(state_.SequenceIn(item.slot));
  const bool is_scored = live.request->sampling().prompt_logprobs.has_value();
  PAGODA_CHECK_MSG(samples || is_scored || end % block_size == 0,
                   "audit: a chunk that is not the last one ends inside a block");
  for (std::int32_t i = 0; i < state_.tables.size(item.slot); ++i) {
    books_[state_.tables.at(item.slot, i).value()].named_by = plan.job;
  }
}

// ---- Who is preempted

// Whoever was handed a block, or still waits for one: a victim's blocks may come by a later fence.
void Auditor::NoteTakers() {
  for (const base::SlotId slot : state_.running) {
    const Sequence& sequence = state_.SequenceIn(slot);
    const bool lacks_block =
        base::DivUp(sequence.num_planned + 1, state_.config.block_size) > state_.tables.size(slot);
    const bool is_known = std::ranges::find(takers_, slot.value()) != takers_.end();
    if (lacks_block && !is_known && !sequence.waits_for_prompt) takers_.push_back(slot.value());
  }
}

void Auditor::CheckVictims() {
  if (shares_changed_) return;  // the reserves in the books are those before
  NoteTakers();
  for (const Runner& runner : runners_) {
    const LiveRequest& live = state_.requests[runner.place];
    if (live.phase != LiveRequest::Phase::kWaiting || live.request->id != runner.id) continue;
    CheckVictim(runner);
  }
}

// Before the plan it was the oldest of its tenant that was not paused, and the reserve suffices for
// it: no other tenant's growth may take it.
bool Auditor::IsKept(const Runner& runner) const {
  const auto oldest = std::ranges::find_if(runners_, [&](const Runner& other) {
    return other.tenant == runner.tenant && !other.paused;
  });
  return &*oldest == &runner && state_.requests[runner.place].request->WorstCaseBlocks(
                                    state_.config.block_size) <= tenants_[runner.tenant].reserve;
}

// A victim for blocks: an older request, or any if the victim is paused, takes some. A
// victim for a slot: somebody was admitted, and its tenant was above its slots.
void Auditor::CheckVictim(const Runner& victim) {
  tally_[Seen::kPausedVictims] += victim.paused;
  const TenantBook& tenant = tenants_[victim.tenant];
  const bool is_over = tenant.pinned - tenant.retiring + tenant.handed_out > tenant.reserve;
  const bool is_kept = IsKept(victim);
  bool by_growth = false, by_other_tenant = false;
  for (const std::uint32_t slot : takers_) {
    const LiveRequest& taker = state_.RequestOf(state_.SequenceIn(base::SlotId(slot)));
    const bool may = taker.request->id < victim.id || victim.paused;
    if (!may) continue;
    const bool is_own = taker.request->tenant.value() == victim.tenant;
    by_growth |= is_own || (is_over && !is_kept);
    by_other_tenant |= !is_own;
  }
  if (by_growth) {
    tally_[Seen::kCrossTenantVictims] += by_other_tenant;
    return;
  }
  PAGODA_CHECK_MSG(tenant.running_slots > FloorOf(victim.tenant, state_.config.max_num_seqs),
                   "audit: E3, E4: a victim for nobody who may take from it");
  ++tally_[Seen::kSlotVictims];
}

// ---- Who is admitted

void Auditor::CheckAdmissions() {
  for (const base::SlotId slot : state_.running) {
    const Sequence& sequence = state_.SequenceIn(slot);
    const LiveRequest& live = state_.RequestOf(sequence);
    if (tables_[slot.value()].incarnation == live.incarnation) continue;
    if (live.receipt.preemptions >= kPreemptionsBeforeRoom) CheckRoom(slot);
    if (!was_new_[sequence.request.value()]) continue;
    if (live.first_open().slot == slot) CountLaneMisses(live);
    for (const Returner& returner : returners_) {
      const LiveRequest& other = state_.requests[returner.place];
      PAGODA_CHECK_MSG(returner.tenant != live.request->tenant.value() ||
                           other.phase != LiveRequest::Phase::kWaiting ||
                           other.request->id != returner.id,
                       "audit: a new request is admitted before one that ran before");
    }
  }
}

// What was preempted often is given blocks for some of what is still to come, all at once.
void Auditor::CheckRoom(base::SlotId slot) const {
  const Sequence& sequence = state_.SequenceIn(slot);
  const scheduler::NewRequest& request = *state_.RequestOf(sequence).request;
  const std::int32_t block_size = state_.config.block_size;
  const std::int32_t known = request.choice(sequence.choice).num_known();
  const std::int32_t most = request.prompt_length() + request.max_tokens();
  const std::int32_t ahead = std::max(4 * block_size, known - request.prompt_length());
  const std::int32_t room = std::min(known + ahead, most - 1);
  PAGODA_CHECK_MSG(state_.tables.size(slot) * block_size >= room,
                   "audit: a request preempted often comes back without room to go on");
}

// ---- Shares and bounds

void Auditor::CheckShares() const {
  const std::int32_t set_aside = state_.config.public_blocks;
  std::int32_t common = scenario_.pool_blocks() - 1 - set_aside, excess = 0, backed = 0;
  std::int32_t owed = set_aside - state_.pool.num_in(BlockState::kPublic);
  for (const TenantBook& tenant : tenants_) {
    common -= tenant.reserve;
    excess += std::max(0, tenant.pinned - tenant.reserve);
    owed += std::max(0, tenant.reserve - tenant.pinned);
    backed += tenant.used - tenant.pinned;
    PAGODA_CHECK_MSG(!tenant.isolated || tenant.used <= tenant.reserve,
                     "audit: an isolated tenant has more than its reserve");
  }
  backed += state_.pool.num_in(BlockState::kFree);
  PAGODA_CHECK_MSG(excess <= common, "audit: more is borrowed than common has");
  PAGODA_CHECK_MSG(backed >= owed, "audit: a reserve is not backed");
}

void Auditor::CheckBounds(const StepPlan& plan) {
  const scheduler::SchedulerConfig& config = state_.config;
  std::size_t tokens = 0;
  std::int64_t chunks = 0;
  std::vector<std::int32_t> tokens_of(tenants_.size(), 0);
  for (const scheduler::WorkItem& item : plan.work) {
    tokens += item.tokens.count;
    const std::uint32_t end = item.first_position + item.tokens.count;
    chunks += std::int64_t{base::DivUp(item.tokens.count, 64u)} * base::DivUp(end, 256u);
    const LiveRequest& live = state_.RequestOf(state_.SequenceIn(item.slot));
    tokens_of[live.request->tenant.value()] += static_cast<std::int32_t>(item.tokens.count);
  }
  PAGODA_CHECK(tokens == plan.plan_tokens.size());
  PAGODA_CHECK(tokens <= static_cast<std::size_t>(config.max_num_batched_tokens));
  PAGODA_CHECK(plan.rows.size() <= static_cast<std::size_t>(config.max_logit_rows_per_step));
  PAGODA_CHECK(plan.work.size() <= static_cast<std::size_t>(config.max_num_seqs));
  PAGODA_CHECK(chunks <= config.max_attention_chunks_per_step);
  CheckTenants(tokens_of);
}

// What one tenant may have, whatever the others do.
void Auditor::CheckTenants(const std::vector<std::int32_t>& tokens_of) {
  std::vector<std::int32_t> slots(tenants_.size(), 0), requests(tenants_.size(), 0);
  for (const base::SlotId slot : state_.running) {
    const Sequence& sequence = state_.SequenceIn(slot);
    const LiveRequest& live = state_.RequestOf(sequence);
    ++slots[live.request->tenant.value()];
    requests[live.request->tenant.value()] += live.first_open().slot == slot;
  }
  for (std::uint32_t t = 0; t < tenants_.size(); ++t) {
    const std::int32_t limit = state_.tenants[t].config.max_running;
    PAGODA_CHECK_MSG(limit == 0 || requests[t] <= limit || !scenario_.other_tenants.empty(),
                     "audit: more of a tenant's requests run than it may have");
    if (!tenants_[t].isolated || !scenario_.other_tenants.empty()) continue;
    tally_[Seen::kIsolatedSteps] += tokens_of[t] > 0;
    PAGODA_CHECK_MSG(tokens_of[t] <= FloorOf(t, state_.config.max_num_batched_tokens),
                     "audit: an isolated tenant has more of a step than its floor");
    PAGODA_CHECK_MSG(slots[t] <= FloorOf(t, state_.config.max_num_seqs),
                     "audit: an isolated tenant has more slots than its floor");
  }
}

std::int32_t Auditor::FloorOf(std::uint32_t tenant, std::int32_t whole) const {
  std::int64_t sum = 0;
  for (const scheduler::Tenant& each : state_.tenants) sum += each.config.weight;
  return static_cast<std::int32_t>(whole * std::int64_t{state_.tenants[tenant].config.weight} /
                                   sum);
}

// ---- Who must move

const Auditor::Runner* Auditor::OldestPlannable(std::uint32_t tenant) const {
  for (const Runner& runner : runners_) {
    if (runner.is_plannable && (tenant == kNobody || runner.tenant == tenant)) return &runner;
  }
  return nullptr;
}

// It waits for a block's key that another is writing, or for blocks that a fence will bring.
bool Auditor::MayStandStill(const Runner& runner) const {
  const LiveRequest& live = state_.requests[runner.place];
  const std::int32_t block_size = state_.config.block_size;
  bool waits_for_key = false, lacks_blocks = false;
  for (const scheduler::Choice& choice : live.request->choices()) {
    if (!choice.slot.has_value()) continue;
    const Sequence& sequence = state_.SequenceIn(*choice.slot);
    if (has_item_[choice.slot->value()]) return true;
    waits_for_key |= sequence.num_planned % block_size == 0 &&
                     sequence.num_planned + block_size <= sequence.num_known;
    lacks_blocks |=
        base::DivUp(sequence.num_planned + 1, block_size) > state_.tables.size(*choice.slot);
  }
  return waits_for_key || (lacks_blocks && was_busy_);
}

void Auditor::CheckProgress(const StepPlan* plan) {
  if (was_suspect_ || state_.jobs.full()) return;
  if (plan == nullptr && state_.jobs.num_in_flight() >= state_.config.max_in_flight) return;
  const auto check = [&](const Runner* runner, bool is_of_all) {
    if (runner == nullptr) return;
    const LiveRequest& live = state_.requests[runner->place];
    if (live.phase == LiveRequest::Phase::kVacant || live.request->id != runner->id) return;
    // Another tenant's slot may be its: the others of its own are paused.
    const scheduler::Tenant& tenant = state_.tenants[runner->tenant];
    const bool lost_slot = tenant.counts.num_slot_victims != tenants_[runner->tenant].slot_victims;
    PAGODA_CHECK_MSG(live.is_running() || !is_of_all || lost_slot,
                     "audit: the oldest was preempted");
    if (!live.is_running()) return;
    PAGODA_CHECK_MSG(MayStandStill(*runner), "audit: the oldest that can run does not move");
  };
  check(OldestPlannable(kNobody), /*is_of_all=*/true);
  for (std::uint32_t t = 0; t < tenants_.size(); ++t) {
    const Runner* oldest = OldestPlannable(t);
    if (oldest == nullptr) continue;
    const scheduler::NewRequest& request = *state_.requests[oldest->place].request;
    // Of the shares before the plan and those that the plan put into force, the smaller.
    const std::int32_t reserve =
        std::min(tenants_[t].reserve, state_.tenants[t].config.reserve_blocks);
    const bool is_within = request.WorstCaseBlocks(state_.config.block_size) <= reserve;
    if (is_within) check(oldest, /*is_of_all=*/false);
  }
}

void Auditor::CountWaits(const StepPlan& plan) {
  const std::int32_t block_size = state_.config.block_size;
  const bool has_budget =
      plan.plan_tokens.size() < static_cast<std::size_t>(state_.config.max_num_batched_tokens);
  for (const base::SlotId slot : state_.running) {
    const Sequence& sequence = state_.SequenceIn(slot);
    const LiveRequest& live = state_.RequestOf(sequence);
    if (has_item_[slot.value()] || live.paused || sequence.waits_for_prompt ||
        sequence.last_token_is_in_flight()) {
      continue;
    }
    const bool lacks_block =
        base::DivUp(sequence.num_planned + 1, block_size) > state_.tables.size(slot);
    if (lacks_block) {
      ++tally_[Seen::kStalls];
    } else if (has_budget && sequence.num_planned % block_size == 0) {
      ++tally_[Seen::kKeyWaits];
    }
  }
}

}  // namespace pagoda::simulation
