// Every block is on exactly one list while nobody holds it: the free list, its tenant's cached
// list, or the retiring list of the job it waits for. Held blocks are on none. Block 0 is the null
// block and ends every list.
#include "scheduler/block_pool.h"

#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/mutants.h"
#include "scheduler/prefix_cache.h"

namespace pagoda::scheduler {
namespace {

// Of the usable blocks, kept out of admissions that draw on common, so that running requests can
// grow.
constexpr std::int32_t kWatermarkPercent = 2;

}  // namespace

std::int32_t BlockPool::Account::Excess() const {
  return std::max(0, pinned - share.reserve_blocks);
}

BlockPool::BlockPool(const Options& options, PrefixCache& index)
    : index_(index),
      blocks_(static_cast<std::size_t>(options.num_blocks)),
      retiring_(static_cast<std::size_t>(options.max_unfenced_jobs) + 1),
      exclusive_(static_cast<std::size_t>(options.num_slots), 0),
      public_blocks_(options.public_blocks),
      scrub_places_(blocks_.size(), kNotListed) {
  PAGODA_CHECK(num_usable() >= 1);
  common_ = num_usable();
  for (const TenantShare& share : options.tenants) {
    accounts_.emplace_back().share = share;
    common_ -= share.reserve_blocks;
  }
  PAGODA_CHECK(common_ >= 0);
  to_scrub_.reserve(blocks_.size());
  evictions_.reserve(blocks_.size());
  watermark_ = WatermarkOf(num_usable());
  for (std::uint32_t item = 1; item < blocks_.size(); ++item) InsertAfter(free_, free_.last, item);
  counts_[static_cast<std::size_t>(BlockState::kFree)] = options.num_blocks - 1;
}

// ---- May a tenant take blocks?

std::int32_t BlockPool::CommonInUse() const {
  std::int32_t sum = 0;
  for (const Account& account : accounts_) sum += account.Excess();
  return sum;
}

bool BlockPool::FitsShare(const Account& account, std::int32_t pinned, std::int32_t excess,
                          std::int32_t count) const {
  const std::int32_t own =
      std::max(0, account.share.reserve_blocks - pinned) + PAGODA_MUTANT(kReserveIsOneMore);
  if (account.share.isolated && !PAGODA_MUTANT(kIsolatedMayBorrow)) return count <= own;
  return count <= own + std::max(0, common_ - (PAGODA_MUTANT(kForgetsExcess) ? 0 : excess));
}

bool BlockPool::CanTake(base::TenantId tenant, std::int32_t count) const {
  const Account& account = accounts_[tenant.value()];
  return FitsShare(account, account.pinned, CommonInUse(), count);
}

bool BlockPool::CanTakeSoon(base::TenantId tenant, std::int32_t count) const {
  std::int32_t excess = 0;
  for (const Account& account : accounts_) {
    excess += std::max(0, account.pinned - account.retiring - account.share.reserve_blocks);
  }
  const Account& account = accounts_[tenant.value()];
  return FitsShare(account, account.pinned - account.retiring, excess, count) &&
         !PAGODA_MUTANT(kRetiringNeverComes);
}

bool BlockPool::KeepsWatermark(base::TenantId tenant, std::int32_t count) const {
  const Account& account = accounts_[tenant.value()];
  const std::int32_t in_use = CommonInUse();
  const std::int32_t excess_after =
      std::max(0, account.pinned + count - account.share.reserve_blocks);
  if (excess_after <= account.Excess() ||
      (in_use == 0 && !PAGODA_MUTANT(kWatermarkOfAnEmptyPool)) || PAGODA_MUTANT(kNoWatermark)) {
    return true;
  }
  return common_ - (in_use - account.Excess() + excess_after) >= watermark_;
}

std::int32_t BlockPool::WatermarkOf(std::int32_t num_usable) {
  return static_cast<std::int32_t>(
      base::DivUp<std::int64_t>(std::int64_t{num_usable} * kWatermarkPercent, 100));
}

bool BlockPool::CouldTakeAlone(base::TenantId tenant, std::int32_t count) const {
  const Account& account = accounts_[tenant.value()];
  const std::int32_t others =
      PAGODA_MUTANT(kEligibleBesideOthers) ? CommonInUse() : account.Excess();
  if (!FitsShare(account, account.pinned, others, count)) return false;
  const std::int32_t excess = std::max(0, account.pinned + count - account.share.reserve_blocks);
  return excess <= account.Excess() || account.Excess() == 0 || common_ - excess >= watermark_;
}

std::int32_t BlockPool::Capacity(base::TenantId tenant) const {
  const TenantShare& share = accounts_[tenant.value()].share;
  return share.reserve_blocks + (share.isolated ? 0 : common_);
}

bool BlockPool::IsOverReserve(base::TenantId tenant) const {
  const Account& account = accounts_[tenant.value()];
  const std::int32_t leaving = PAGODA_MUTANT(kOverReserveCountsRetiring) ? 0 : account.retiring;
  return account.pinned - leaving + PAGODA_MUTANT(kOverReserveAtReserve) >
         account.share.reserve_blocks;
}

bool BlockPool::FitsShares(std::span<const TenantShare> shares, base::TenantId tenant,
                           std::int32_t count) const {
  PAGODA_CHECK(shares.size() == accounts_.size());
  std::int32_t room = num_usable();
  for (std::size_t t = 0; t < shares.size(); ++t) {
    const std::int32_t pinned = accounts_[t].pinned + (t == tenant.value() ? count : 0);
    const std::int32_t above = std::max(0, pinned - shares[t].reserve_blocks);
    if (shares[t].isolated && above > 0) return false;
    room -= shares[t].reserve_blocks + above;
  }
  return room >= 0;
}

bool BlockPool::TrySetShares(std::span<const TenantShare> shares) {
  if (!PAGODA_MUTANT(kNewSharesUnasked) && !FitsShares(shares, base::TenantId(0), 0)) return false;
  common_ = num_usable();
  for (std::size_t t = 0; t < shares.size(); ++t) {
    Account& account = accounts_[t];
    account.share = shares[t];
    common_ -= account.share.reserve_blocks;
    while (!PAGODA_MUTANT(kNewShareKeepsCache) && account.share.isolated &&
           account.used > account.share.reserve_blocks) {
      ++num_evictions_;
      DropCached(base::BlockId(account.cached.first));
    }
  }
  return true;
}

// ---- Lists and states

void BlockPool::InsertAfter(List& list, std::uint32_t place, std::uint32_t item) {
  Block& block = blocks_[item];
  block.previous = place;
  block.next = place == 0 ? list.first : blocks_[place].next;
  (place == 0 ? list.first : blocks_[place].next) = item;
  (block.next == 0 ? list.last : blocks_[block.next].previous) = item;
  ++list.size;
}

void BlockPool::Remove(List& list, std::uint32_t item) {
  Block& block = blocks_[item];
  (block.previous == 0 ? list.first : blocks_[block.previous].next) = block.next;
  (block.next == 0 ? list.last : blocks_[block.next].previous) = block.previous;
  block.previous = block.next = 0;
  --list.size;
}

// A block may settle long after its release, so its place is looked for from the end: few steps, as
// few settle late.
void BlockPool::PushByRecency(List& list, std::uint32_t item) {
  std::uint32_t place = list.last;
  while (!PAGODA_MUTANT(kRecencyAtFence) && place != 0 &&
         blocks_[place].released_at > blocks_[item].released_at) {
    place = blocks_[place].previous;
  }
  InsertAfter(list, place, item);
}

// Keeps the counts of states and of the tenant. Lists are the caller's.
void BlockPool::SetState(Block& block, BlockState state) {
  Account& account = AccountOf(block);
  const auto is_used = [](BlockState s) {
    return s != BlockState::kFree && s != BlockState::kPublic;
  };
  const auto is_pinned = [&](BlockState s) { return is_used(s) && s != BlockState::kCached; };
  account.used += is_used(state) - is_used(block.state);
  account.pinned += is_pinned(state) - is_pinned(block.state);
  account.retiring += (state == BlockState::kRetiring) - (block.state == BlockState::kRetiring);
  --counts_[static_cast<std::size_t>(block.state)];
  ++counts_[static_cast<std::size_t>(state)];
  block.state = state;
}

// ---- Hand-out and eviction

bool BlockPool::TryAllocate(base::TenantId tenant, base::SlotId holder, base::JobId job,
                            std::span<BlockRef> blocks) {
  PAGODA_CHECK(job > fenced_);
  if (!CanTake(tenant, static_cast<std::int32_t>(blocks.size()))) return false;
  for (BlockRef& ref : blocks) {
    const base::BlockId id = TakeOne(tenant);
    Block& block = At(id);
    block.num_holders = 1;
    block.holder_xor = holder.value() + 1;
    if (!PAGODA_MUTANT(kHandOutNamesNoJob)) block.last_job = job;
    block.generation += !PAGODA_MUTANT(kGenerationStands);
    ++exclusive_[holder.value()];
    ref = BlockRef(id, block.generation);
  }
  return true;
}

base::BlockId BlockPool::TakeOne(base::TenantId tenant) {
  const Account& account = accounts_[tenant.value()];
  const bool at_cap = account.share.isolated && !PAGODA_MUTANT(kIsolatedTakesFree) &&
                      account.used >= account.share.reserve_blocks;
  if (free_.size == 0 || at_cap) EvictFor(tenant);
  const std::uint32_t item = free_.first;
  PAGODA_CHECK(item != 0);
  Block& block = blocks_[item];
  PAGODA_CHECK_MSG(block.last_job <= fenced_, "a block is handed out before its fence");
  PAGODA_CHECK(!index_.has_entry(base::BlockId(item)));
  Remove(free_, item);
  block.tenant = tenant;
  if (std::exchange(block.must_scrub, false)) UnlistForScrub(base::BlockId(item));
  SetState(block, BlockState::kOwned);
  return base::BlockId(item);
}

void BlockPool::EvictFor(base::TenantId tenant) {
  const base::TenantId owner = ChooseEvictionTenant(tenant);
  const Account& account = accounts_[owner.value()];
  if (owner != tenant) {
    PAGODA_CHECK_MSG(account.used - 1 >= account.share.reserve_blocks,
                     "E1: an eviction caused by another tenant cuts into a reserve");
  } else {
    PAGODA_CHECK_MSG(account.used >= account.share.reserve_blocks,
                     "E2: a tenant below its reserve evicts its own");
  }
  const base::BlockId victim(PAGODA_MUTANT(kEvictsNewest) ? account.cached.last
                                                          : account.cached.first);
  evictions_.push_back({.owner = owner, .taker = tenant, .key = index_.key_of(victim)});
  ++num_evictions_;
  FetchNextVictims(victim);
  DropCached(victim);
}

// The victims to come were last touched long ago, and stand behind one another: at each eviction
// the next one's chains are fetched, the entry of the one after it, and the block of the one after
// that.
void BlockPool::FetchNextVictims(base::BlockId victim) const {
  const base::BlockId next(At(victim).next);
  if (next != base::kNullBlock) index_.FetchChainsOf(next);
  const base::BlockId second(At(next).next);
  index_.FetchEntry(second);
  Fetch(base::BlockId(At(second).next));
}

// The tenant furthest above its reserve, ties to the lower id; the taker itself when none is above.
// Only tenants with cached blocks count.
base::TenantId BlockPool::ChooseEvictionTenant(base::TenantId tenant) const {
  const Account& own = accounts_[tenant.value()];
  base::TenantId chosen = tenant;
  std::int32_t furthest = 0;
  const bool own_only = (own.share.isolated && own.used >= own.share.reserve_blocks) ||
                        (PAGODA_MUTANT(kEvictsOwnFirst) && own.cached.size > 0);
  for (std::uint32_t i = 0; i < accounts_.size() && !own_only; ++i) {
    const std::int32_t above = accounts_[i].used - accounts_[i].share.reserve_blocks;
    if (accounts_[i].cached.size == 0 || above <= furthest - PAGODA_MUTANT(kTieToTheHigher)) {
      continue;
    }
    if (furthest > 0 && PAGODA_MUTANT(kEvictsFirstTenant)) continue;
    furthest = above;
    chosen = base::TenantId(i);
  }
  PAGODA_CHECK_MSG(accounts_[chosen.value()].cached.size > 0,
                   "no block to hand out though the shares allow it");
  return chosen;
}

void BlockPool::ForgetAndFree(std::uint32_t item) {
  Block& block = blocks_[item];
  const bool forgets = !PAGODA_MUTANT(kFreeKeepsEntry);
  if (forgets && index_.has_entry(base::BlockId(item))) index_.Forget(base::BlockId(item));
  SetState(block, BlockState::kFree);
  if (block.must_scrub) ListForScrub(base::BlockId(item));
  // The most recently freed goes out first: its bytes are the likeliest to be in a cache of the
  // machine.
  InsertAfter(free_, 0, item);
}

void BlockPool::DropCached(base::BlockId id) {
  Block& block = At(id);
  PAGODA_CHECK(block.state == BlockState::kCached);
  Remove(AccountOf(block).cached, id.value());
  ForgetAndFree(id.value());
}

// ---- Holding and releasing

BlockRef BlockPool::Hold(base::BlockId id, base::SlotId holder) {
  Block& block = At(id);
  if (block.state == BlockState::kPublic) {
    ++block.num_holders;
    return BlockRef(id, block.generation);
  }
  PAGODA_CHECK(index_.has_entry(id) || block.num_holders > 0);
  const bool leaves = !PAGODA_MUTANT(kHitStaysListed);
  if (leaves && block.state == BlockState::kCached) Remove(AccountOf(block).cached, id.value());
  const bool returns = block.state == BlockState::kRetiring && !PAGODA_MUTANT(kHitStaysRetiring);
  if (returns) Remove(RetiringListOf(block.last_job), id.value());
  PAGODA_CHECK(block.state != BlockState::kFree && block.state != BlockState::kOwned);
  SetState(block, BlockState::kSealed);
  if (block.num_holders == 0) ++exclusive_[holder.value()];
  if (block.num_holders == 1) {
    --exclusive_[block.holder_xor - 1];
    AccountOf(block).shared += !PAGODA_MUTANT(kSharedNotCounted);
  }
  block.num_holders += !(PAGODA_MUTANT(kHolderNotCounted) && block.num_holders > 0);
  if (!PAGODA_MUTANT(kHolderNotNamed)) block.holder_xor ^= holder.value() + 1;
  return BlockRef(id, block.generation);
}

void BlockPool::Release(base::BlockId id, base::SlotId holder, base::JobId last_job) {
  Block& block = At(id);
  if (block.state == BlockState::kPublic) {
    PAGODA_CHECK(block.num_holders > 0);
    --block.num_holders;
    if (PAGODA_MUTANT(kLaneGoesWithReader) && block.num_holders == 0) ForgetAndFree(id.value());
    return;
  }
  PAGODA_CHECK(block.state == BlockState::kOwned || block.state == BlockState::kSealed);
  PAGODA_CHECK(block.num_holders > 0);
  --block.num_holders;
  block.holder_xor ^= holder.value() + 1;
  if (!PAGODA_MUTANT(kReleaseForgetsJob)) block.last_job = std::max(block.last_job, last_job);
  if (block.num_holders == 0) --exclusive_[holder.value()];
  if (block.num_holders == 1) {
    ++exclusive_[block.holder_xor - 1];
    --AccountOf(block).shared;
  }
  if (block.num_holders > 0) return;

  PAGODA_CHECK_MSG(block.holder_xor == 0, "a block was released by one that did not hold it");
  const bool stays = index_.has_entry(id) && !PAGODA_MUTANT(kNothingIsCached);
  block.after = stays ? BlockState::kCached : BlockState::kFree;
  block.released_at = ++releases_;
  const bool begins_anew =
      !PAGODA_MUTANT(kAgeNeverBegins) || block.released_when == base::Instant();
  if (begins_anew) block.released_when = now_;
  SetState(block, BlockState::kRetiring);
  List& waiting = RetiringListOf(block.last_job);
  InsertAfter(waiting, waiting.last, id.value());
  if (block.last_job <= fenced_ || PAGODA_MUTANT(kReleaseBeforeFence)) {
    Remove(waiting, id.value());
    Settle(id.value());
  }
}

void BlockPool::Settle(std::uint32_t item) {
  Block& block = blocks_[item];
  PAGODA_CHECK(block.state == BlockState::kRetiring);
  if (block.after == BlockState::kCached) {
    SetState(block, BlockState::kCached);
    PushByRecency(AccountOf(block).cached, item);
  } else {
    ForgetAndFree(item);
  }
}

void BlockPool::Seal(base::BlockId id) {
  Block& block = At(id);
  PAGODA_CHECK(block.state == BlockState::kOwned);
  PAGODA_CHECK(block.num_holders == 1);
  SetState(block, BlockState::kSealed);
}

void BlockPool::MakePublic(base::BlockId id, base::SlotId holder) {
  Block& block = At(id);
  PAGODA_CHECK(IsOwnedBy(id, holder));
  PAGODA_CHECK(num_in(BlockState::kPublic) < public_blocks_);
  --exclusive_[holder.value()];
  block.num_holders = 0;
  block.holder_xor = 0;
  SetState(block, BlockState::kPublic);
}

void BlockPool::Fence(base::JobId job) {
  PAGODA_CHECK(job.value() - fenced_.value() < retiring_.size());
  if (PAGODA_MUTANT(kFenceIsAhead)) job = base::JobId(job.value() + 1);
  while (fenced_ < job) {
    fenced_ = base::JobId(fenced_.value() + 1);
    List& waiting = RetiringListOf(fenced_);
    while (waiting.first != 0) {
      const std::uint32_t item = waiting.first;
      PAGODA_CHECK(blocks_[item].last_job == fenced_);
      Remove(waiting, item);
      Settle(item);
      if (PAGODA_MUTANT(kFenceSettlesOne)) break;
    }
  }
}

// ---- Flushes and age

void BlockPool::BeginPlan(base::Instant now) {
  PAGODA_CHECK(now >= now_);
  now_ = now;
  evictions_.clear();
}

void BlockPool::ExpireCached(base::Instant until, std::int32_t most) {
  for (List& waiting : retiring_) {
    const std::uint32_t item = waiting.first;
    if (!PAGODA_MUTANT(kAgeForgetsFence) || item == 0) continue;
    if (blocks_[item].released_when > until) continue;
    Remove(waiting, item);
    ForgetAndFree(item);
  }
  for (Account& account : accounts_) {
    for (std::int32_t i = 0; i < most && account.cached.size > 0; ++i) {
      Block& oldest = blocks_[account.cached.first];
      if (oldest.released_when > until) break;
      oldest.must_scrub = true;
      DropCached(base::BlockId(account.cached.first));
    }
  }
}

base::Instant BlockPool::OldestCached() const {
  base::Instant oldest = base::Instant::Never();
  for (const Account& account : accounts_) {
    if (account.cached.size == 0) continue;
    oldest = std::min(oldest, blocks_[account.cached.first].released_when);
  }
  return oldest;
}

template <typename Pred>
std::int32_t BlockPool::DropWhere(Pred is_wanted) {
  std::int32_t dropped = 0;
  for (std::uint32_t item = 1; item < blocks_.size(); ++item) {
    const base::BlockId id(item);
    if (!index_.has_entry(id) || !is_wanted(id)) continue;
    Block& block = At(id);
    block.must_scrub = !PAGODA_MUTANT(kFlushScrubsNothing);
    if (block.state == BlockState::kCached) {
      ++dropped;
      DropCached(id);
      continue;
    }
    if (!PAGODA_MUTANT(kFlushKeepsRetiring)) block.after = BlockState::kFree;
    index_.Forget(id);
  }
  return dropped;
}

std::int32_t BlockPool::DropNamespace(std::uint32_t namespace_index) {
  return DropWhere([&](base::BlockId id) { return index_.namespace_of(id) == namespace_index; });
}

std::int32_t BlockPool::DropEntriesOf(base::TenantId tenant) {
  for (std::uint32_t item = 1; PAGODA_MUTANT(kFlushTakesLane) && item < blocks_.size(); ++item) {
    const Block& block = blocks_[item];
    const bool is_idle = block.state == BlockState::kPublic && block.num_holders == 0;
    if (is_idle) ForgetAndFree(item);
  }
  return DropWhere([&](base::BlockId id) { return index_.tenant_of(id) == tenant; });
}

// The last one takes the place of one that leaves.
void BlockPool::ListForScrub(base::BlockId block) {
  PAGODA_CHECK(scrub_places_[block.value()] == kNotListed);
  scrub_places_[block.value()] = static_cast<std::uint32_t>(to_scrub_.size());
  to_scrub_.push_back(block);
}

void BlockPool::UnlistForScrub(base::BlockId block) {
  const std::uint32_t place = std::exchange(scrub_places_[block.value()], kNotListed);
  PAGODA_CHECK(place != kNotListed);
  const base::BlockId last = to_scrub_.back();
  to_scrub_.pop_back();
  if (last == block) return;
  to_scrub_[place] = last;
  scrub_places_[last.value()] = place;
}

std::optional<base::BlockId> BlockPool::TakeToScrub() {
  if (to_scrub_.empty()) return std::nullopt;
  const base::BlockId id = to_scrub_.back();
  UnlistForScrub(id);
  PAGODA_CHECK(At(id).state == BlockState::kFree && At(id).must_scrub);
  At(id).must_scrub = false;
  return id;
}

}  // namespace pagoda::scheduler
