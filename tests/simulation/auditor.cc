// The books: what each block is, by the plans alone. The rules that are held against them stand in
// auditor_rules.cc.
#include "tests/simulation/auditor.h"

#include <span>
#include <utility>

#include "base/check.h"

namespace pagoda::simulation {

using scheduler::BlockState;
using scheduler::LiveRequest;
using scheduler::Sequence;
using scheduler::StepPlan;

namespace {

bool IsHeld(BlockState state) {
  return state == BlockState::kOwned || state == BlockState::kSealed;
}

}  // namespace

Auditor::Auditor(const scheduler::SchedulerState& state, const Scenario& scenario, Tally& tally)
    : state_(state),
      scenario_(scenario),
      tally_(tally),
      books_(static_cast<std::size_t>(scenario.pool_blocks())),
      tenants_(std::max<std::size_t>(1, scenario.config.tenants.size())),
      epochs_(tenants_.size(), 0),
      tables_(static_cast<std::size_t>(scenario.config.max_num_seqs)),
      own_work_(scenario.requests.size()),
      was_zeroed_(books_.size()),
      has_item_(tables_.size()) {
  ReadShares();
}

// A number that two requests share exactly when they may read each other's blocks.
std::uint64_t Auditor::NamespaceOf(const LiveRequest& live) const {
  const std::uint64_t place = live.request->id.value() - 1;
  const RequestScript& script = scenario_.requests[place];
  if (script.one_request_namespace) return kOneRequestNamespaces + place;
  const std::uint64_t salt =
      script.salt.has_value() ? static_cast<std::uint64_t>(script.salt->front()) : 0;
  return 1 + script.tenant.value() * 1'000 + salt;
}

// Which tenant has which share, and what it holds of the pool.
void Auditor::ReadShares() {
  shares_changed_ = false;
  for (std::size_t t = 0; t < tenants_.size(); ++t) {
    const scheduler::TenantConfig& config = state_.tenants[t].config;
    shares_changed_ |= tenants_[t].reserve != config.reserve_blocks;
    shares_changed_ |= tenants_[t].isolated != config.isolated;
    tenants_[t] = {.reserve = config.reserve_blocks,
                   .isolated = config.isolated,
                   .slot_victims = state_.tenants[t].counts.num_slot_victims};
  }
  for (std::uint32_t block = 1; block < books_.size(); ++block) {
    const BlockState state = state_.pool.state(base::BlockId(block));
    if (state == BlockState::kFree || state == BlockState::kPublic) continue;
    TenantBook& tenant = tenants_[books_[block].tenant];
    ++tenant.used;
    tenant.pinned += state != BlockState::kCached;
    tenant.retiring += state == BlockState::kRetiring;
  }
  for (const base::SlotId slot : state_.running) {
    const LiveRequest& live = state_.RequestOf(state_.SequenceIn(slot));
    ++tenants_[live.request->tenant.value()].running_slots;
  }
}

void Auditor::Flushed(std::optional<base::TenantId> tenant) {
  for (std::uint32_t t = 0; t < epochs_.size(); ++t) {
    if (!tenant.has_value() || tenant->value() == t) ++epochs_[t];
  }
  Observe();
}

// Who holds what now, by the tables; and what is new in them.
void Auditor::NoteHolders() {
  for (Book& book : books_) {
    book.holder = kNobody;
    book.num_holders = 0;
  }
  for (const base::SlotId slot : state_.running) {
    for (std::int32_t i = 0; i < state_.tables.size(slot); ++i) {
      const base::BlockId block = state_.tables.at(slot, i);
      if (block == base::kNullBlock) continue;
      Book& book = books_[block.value()];
      book.holder = ++book.num_holders == 1 ? slot.value() : kNobody;
      book.table_index = i;
    }
  }
  NoteOwnWork();
  for (const base::SlotId slot : state_.running) {
    const LiveRequest& live = state_.RequestOf(state_.SequenceIn(slot));
    SeenTable& seen = tables_[slot.value()];
    if (seen.incarnation != live.incarnation) seen.blocks.clear();
    seen.incarnation = live.incarnation;
    seen.script = live.request->id.value() - 1;
    seen.computes_all = ComputesAll(live);
    seen.blocks.resize(static_cast<std::size_t>(state_.tables.size(slot)), 0);
    for (std::int32_t i = 0; i < state_.tables.size(slot); ++i) {
      const std::uint32_t block = state_.tables.at(slot, i).value();
      std::uint32_t& before = seen.blocks[static_cast<std::size_t>(i)];
      if (before == block) continue;
      before = block;
      if (block != 0 && !was_zeroed_[block]) CheckNewEntry(slot, i);
    }
  }
}

void Auditor::Observe() {
  ++observations_;
  // One that ended or gave way may have taken a cached or a retiring block before, and let it go
  // again unseen.
  const bool has_adopted =
      std::exchange(num_adoptions_, state_.counters.num_adoptions) != num_adoptions_;
  const bool may_hide = std::exchange(was_admitted_in_vain_, false) || has_adopted;
  for (std::uint32_t block = 1; block < books_.size(); ++block) {
    Book& book = books_[block];
    const BlockState now = state_.pool.state(base::BlockId(block));
    PAGODA_CHECK_MSG(book.state != BlockState::kPublic || now == BlockState::kPublic,
                     "audit: a block of the public lane is let go");
    if (now == BlockState::kPublic && book.state != BlockState::kPublic) EnterLane(book);
    const bool was_let_go = IsHeld(book.state) && !IsHeld(now);
    if (was_let_go) {
      book.released_at = book.released_last = observations_;
      book.released_after = begun_;
      book.released_before = now_;
      // Another may have adopted it in the same call from the one that ended, and let it go later.
      book.released_from = may_hide ? kNobody : book.holder;
      book.released_index = book.table_index;
    }
    if (may_hide && (now == BlockState::kRetiring || now == BlockState::kCached)) {
      book.released_last = observations_;
      book.released_before = now_;
    }
    book.state = now;
  }
  NoteHolders();
}

void Auditor::NoteRunners() {
  runners_.clear();
  for (const base::SlotId slot : state_.running) {
    const Sequence& sequence = state_.SequenceIn(slot);
    const LiveRequest& live = state_.RequestOf(sequence);
    if (runners_.empty() || runners_.back().place != sequence.request) {
      runners_.push_back({.place = sequence.request,
                          .id = live.request->id,
                          .tenant = live.request->tenant.value(),
                          .paused = live.paused});
    }
    runners_.back().is_plannable |=
        !live.paused && !sequence.waits_for_prompt && !sequence.last_token_is_in_flight();
  }
}

// Who waits, and whether for the first time. A paused one waits for its reader.
void Auditor::NoteWaiting() {
  was_suspect_ = false;
  returners_.clear();
  const std::span<const LiveRequest> all = state_.requests.all();
  was_new_.assign(all.size(), false);
  for (std::uint32_t place = 0; place < all.size(); ++place) {
    const LiveRequest& live = all[place];
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    was_suspect_ |= live.num_failures >= 2;
    was_new_[place] = !live.was_admitted;
    if (live.phase == LiveRequest::Phase::kWaiting && live.was_admitted && !live.paused) {
      returners_.push_back(
          {scheduler::RequestIndex(place), live.request->id, live.request->tenant.value()});
    }
  }
}

void Auditor::BeforePlan(base::Instant now) {
  Observe();
  now_ = now;
  num_preemptions_ = state_.counters.num_preemptions;
  ReadShares();
  NoteRunners();
  NoteWaiting();
  std::erase_if(runners_, [&](const Runner& runner) {
    return state_.requests[runner.place].request->deadline() <= now;
  });
  takers_.clear();
  std::fill(was_zeroed_.begin(), was_zeroed_.end(), false);
  std::fill(has_item_.begin(), has_item_.end(), false);
  was_busy_ = !state_.jobs.empty() || state_.pool.num_in(BlockState::kRetiring) > 0;
}

// Nothing was let go while the plan was made, so that its hand-outs can be followed one by one.
bool Auditor::IsClean() const {
  if (shares_changed_ || scenario_.config.max_namespaces < kNamespacesForAll) return false;
  if (scenario_.config.cached_block_ttl_ms > 0) return false;
  for (std::uint32_t block = 1; block < books_.size(); ++block) {
    const BlockState now = state_.pool.state(base::BlockId(block));
    const BlockState before = books_[block].state;
    if (IsHeld(before) && (!IsHeld(now) || was_zeroed_[block])) return false;
    if (before == BlockState::kCached && now == BlockState::kFree) return false;
    if (was_zeroed_[block] && before != BlockState::kFree && !IsHeld(now)) return false;
  }
  return true;
}

void Auditor::TakeEffects(const StepPlan& plan) {
  for (const scheduler::MemoryEffect& effect : plan.memory_effects) {
    if (effect.kind == scheduler::MemoryEffect::Kind::kCopy) {
      CheckCopy(plan.copies[effect.index], plan);
    } else {
      TakeHandOut(plan.zeros[effect.index].block.value(), plan);
    }
  }
  for (const std::uint32_t block : unclaimed_) {
    books_[block].tenant = TenantWithMore();
    ++tenants_[books_[block].tenant].handed_out;
  }
  unclaimed_.clear();
}

// The tenant of a block whose taker is no longer known: one for which the pool counts more than the
// books do.
std::uint32_t Auditor::TenantWithMore() const {
  std::vector<std::int32_t> pinned(tenants_.size(), 0);
  for (std::uint32_t block = 1; block < books_.size(); ++block) {
    const BlockState state = state_.pool.state(base::BlockId(block));
    const std::uint32_t tenant = books_[block].tenant;
    const bool is_pinned =
        state != BlockState::kFree && state != BlockState::kCached && state != BlockState::kPublic;
    if (is_pinned && tenant != kNobody) ++pinned[tenant];
  }
  for (std::uint32_t t = 0; t < tenants_.size(); ++t) {
    if (state_.pool.num_pinned(base::TenantId(t)) > pinned[t]) return t;
  }
  PAGODA_CHECK_MSG(false, "audit: a block was handed out to no tenant");
  return kNobody;
}

// A zeroed block was handed out, or is one that a flush had freed.
void Auditor::TakeHandOut(std::uint32_t block, const StepPlan& plan) {
  Book& book = books_[block];
  PAGODA_CHECK_MSG(book.prefix == kNobody, "audit: a block of the public lane is handed out");
  PAGODA_CHECK_MSG(book.named_by <= fenced_, "audit: a block is handed out before its fence");
  const BlockState now = state_.pool.state(base::BlockId(block));
  if (now == BlockState::kFree) return;  // nobody has it: what a flush had freed is zeroed
  const std::uint32_t slot = book.holder;
  if (slot == kNobody) {
    // Its taker was a victim of the same plan.
    PAGODA_CHECK_MSG(now == BlockState::kRetiring, "audit: a block was handed out to no table");
    book.tenant = kNobody;
    book.name_space = 0;
    book.incarnation = 0;
    book.computes_all = false;
    book.named_by = plan.job;
    unclaimed_.push_back(block);
    return;
  }
  const LiveRequest& live = state_.RequestOf(state_.SequenceIn(base::SlotId(slot)));
  const std::uint32_t taker = live.request->tenant.value();
  ++tenants_[taker].handed_out;
  if (std::ranges::find(takers_, slot) == takers_.end()) takers_.push_back(slot);
  book.tenant = taker;
  book.name_space = NamespaceOf(live);
  book.epoch = epochs_[taker];
  book.incarnation = live.incarnation;
  book.computes_all = ComputesAll(live);
  book.written_by = {};
  book.named_by = plan.job;
}

// More gave way in the plan than ran before it.
bool Auditor::WasAdmittedInVain() const {
  const auto gave_way = std::ranges::count_if(runners_, [&](const Runner& runner) {
    const LiveRequest& live = state_.requests[runner.place];
    return live.phase == LiveRequest::Phase::kWaiting && live.request->id == runner.id;
  });
  return state_.counters.num_preemptions - num_preemptions_ > gave_way;
}

void Auditor::AfterPlan(const StepPlan* plan) {
  for (std::size_t t = 0; t < tenants_.size(); ++t) {
    shares_changed_ |= tenants_[t].reserve != state_.tenants[t].config.reserve_blocks ||
                       tenants_[t].isolated != state_.tenants[t].config.isolated;
  }
  if (plan != nullptr) {
    for (const scheduler::BlockZero& zero : plan->zeros) {
      PAGODA_CHECK_MSG(!was_zeroed_[zero.block.value()], "audit: a block is handed out twice");
      was_zeroed_[zero.block.value()] = true;
    }
    const bool is_clean = IsClean();
    CheckAdmissions();
    NoteHolders();
    if (is_clean) CheckEvictions(*plan);
    TakeEffects(*plan);
    for (const scheduler::WorkItem& item : plan->work) CheckItem(*plan, item);
    CheckBounds(*plan);
    CountWaits(*plan);
  }
  CheckVictims();
  CheckProgress(plan);
  CheckAges(plan);
  std::fill(was_zeroed_.begin(), was_zeroed_.end(), false);
  was_admitted_in_vain_ = WasAdmittedInVain();
  Observe();
  if (plan != nullptr) begun_ = now_;
  ReadShares();
  CheckShares();
}

}  // namespace pagoda::simulation
