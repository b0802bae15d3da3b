// Who is evicted. A plan's zeros stand in the order of taking, with one exception: a copy source
// that was itself taken, as the copy's own target, has changed places with the last block taken for
// the same sequence. That looks like one taken last, so both orders are tried.
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "tests/simulation/auditor.h"

namespace pagoda::simulation {

using scheduler::BlockState;
using scheduler::LiveRequest;
using scheduler::StepPlan;

namespace {

constexpr std::size_t kMostExchanges = 6;

}  // namespace

// Cached before the plan, and still there.
bool Auditor::Survives(std::uint32_t block) const {
  return books_[block].state == BlockState::kCached && !was_zeroed_[block] &&
         state_.pool.state(base::BlockId(block)) == BlockState::kCached;
}

void Auditor::NoteTakings(const StepPlan& plan) {
  takings_.clear();
  for (const scheduler::MemoryEffect& effect : plan.memory_effects) {
    if (effect.kind == scheduler::MemoryEffect::Kind::kCopy) continue;
    const std::uint32_t block = plan.zeros[effect.index].block.value();
    const std::uint32_t slot = books_[block].holder;
    const BlockState now = state_.pool.state(base::BlockId(block));
    if (slot == kNobody || now == BlockState::kFree) continue;
    const LiveRequest& live = state_.RequestOf(state_.SequenceIn(base::SlotId(slot)));
    takings_.push_back({.block = block, .taker = live.request->tenant.value(), .slot = slot});
  }
}

std::vector<Auditor::Exchange> Auditor::PossibleExchanges(const StepPlan& plan) const {
  std::vector<Exchange> exchanges;
  for (const scheduler::BlockCopy& copy : plan.copies) {
    const auto target = std::ranges::find(takings_, copy.target.value(), &Taking::block);
    if (target == takings_.end()) continue;
    const auto source = std::find_if(target, takings_.end(), [&](const Taking& taking) {
      return taking.block == copy.source.value() && taking.slot == target->slot;
    });
    if (source == takings_.end()) continue;
    const auto next = source + 1;
    if (next != takings_.end() && next->slot == source->slot) continue;
    exchanges.push_back({target - takings_.begin(), source - takings_.begin()});
  }
  return exchanges;
}

void Auditor::CheckEvictions(const StepPlan& plan) {
  NoteTakings(plan);
  const std::vector<Exchange> exchanges = PossibleExchanges(plan);
  PAGODA_CHECK(exchanges.size() <= kMostExchanges);
  const char* fault = nullptr;
  const std::vector<Taking> as_planned = takings_;
  for (std::size_t mask = 0; mask < std::size_t{1} << exchanges.size(); ++mask) {
    takings_ = as_planned;
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      std::swap(takings_[static_cast<std::size_t>(exchanges[i].first)],
                takings_[static_cast<std::size_t>(exchanges[i].second)]);
    }
    fault = FaultOfTakings();
    if (fault == nullptr) break;
  }
  PAGODA_CHECK_MSG(fault == nullptr, fault);
  tenants_ = trial_;
  for (const Taking& taking : takings_) {
    const Book& book = books_[taking.block];
    if (book.state != BlockState::kCached) continue;
    ++tally_[Seen::kAuditedEvictions];
    ++tally_[book.tenant == taking.taker ? Seen::kEvictionsOfOwn : Seen::kEvictionsByOthers];
  }
}

// Null: in this order, each was taken as the rules have it. What the tenants use then is in trial_.
const char* Auditor::FaultOfTakings() {
  trial_ = tenants_;
  for (const Taking& taking : takings_) {
    if (books_[taking.block].state == BlockState::kCached) {
      if (const char* fault = FaultOfEviction(taking)) return fault;
      --trial_[books_[taking.block].tenant].used;
    }
    ++trial_[taking.taker].used;
  }
  return nullptr;
}

const char* Auditor::FaultOfEviction(const Taking& taking) const {
  const std::uint32_t owner = books_[taking.block].tenant;
  const TenantBook& loser = trial_[owner];
  const TenantBook& winner = trial_[taking.taker];
  const bool is_own = owner == taking.taker;
  const std::int32_t above = loser.used - loser.reserve;
  if (!is_own && above <= 0) return "audit: E1: an eviction by another cuts into a reserve";
  if (is_own && above < 0) return "audit: E2: a tenant below its reserve evicts its own";
  const bool at_cap = winner.isolated && winner.used >= winner.reserve;
  if (at_cap && !is_own) return "audit: an isolated tenant at R takes of others";
  for (std::uint32_t other = 1; other < books_.size() && !at_cap; ++other) {
    const bool was_free = books_[other].state == BlockState::kFree && !was_zeroed_[other];
    if (was_free) return "audit: an eviction while a block is free";
    if (!Survives(other)) continue;
    const std::uint32_t tenant = books_[other].tenant;
    const std::int32_t others_above = trial_[tenant].used - trial_[tenant].reserve;
    if (others_above > std::max(above, 0)) {
      return "audit: another tenant is further above its reserve";
    }
    if (others_above == above && above > 0 && tenant < owner) {
      return "audit: a tie goes to the lower tenant";
    }
  }
  return FaultOfRecency(taking.block);
}

const char* Auditor::FaultOfRecency(std::uint32_t evicted) const {
  const Book& gone = books_[evicted];
  for (std::uint32_t other = 1; other < books_.size(); ++other) {
    const Book& kept = books_[other];
    if (kept.tenant != gone.tenant || !Survives(other)) continue;
    if (kept.released_last < gone.released_at) {
      return "audit: an eviction passes over a block that was released earlier";
    }
    // One that was adopted again may have been let go by another, later.
    const bool was_seen =
        kept.released_last == kept.released_at && gone.released_last == gone.released_at;
    const bool of_one_sequence = was_seen && kept.released_at == gone.released_at &&
                                 kept.released_from == gone.released_from &&
                                 gone.released_from != kNobody;
    if (of_one_sequence && kept.released_index >= gone.released_index) {
      return "audit: a block is evicted before what stands on it";
    }
  }
  return nullptr;
}

}  // namespace pagoda::simulation
