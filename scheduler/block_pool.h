#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "scheduler/block_keys.h"
#include "scheduler/block_ref.h"

namespace pagoda::scheduler {

class PrefixCache;

// The states of a block; the drawing of the moves is in README.md.
enum class BlockState : std::uint8_t { kFree, kOwned, kSealed, kCached, kRetiring, kPublic };
inline constexpr std::size_t kNumBlockStates = 6;
// Its content is whole and never written again.
constexpr bool IsReadOnly(BlockState state) {
  return state == BlockState::kSealed || state == BlockState::kPublic;
}

// What the configuration gives a tenant.
struct TenantShare {
  std::int32_t reserve_blocks = 0;
  bool isolated = false;  // never borrows from common
};

// A cached block that gave way to a hand-out.
struct Eviction {
  base::TenantId owner, taker;
  BlockKey key;
};

// The blocks of one KV group, shared by all tenants under their shares. Owns numbers only; the
// bytes live in the model's KV storage. Tells the index (PrefixCache) when an indexed block leaves.
// Owner: SchedulerState. Threads: none of its own.
// Invariants (CheckInvariants): every block but the null one is in exactly one state and on at most
// one list; holders are counted, and their slots XORed, so that the last one is known; sum of
// excess over tenants <= common; a Cached block has an entry and no holder; a block named by a job
// that is not fenced is never handed out.
class BlockPool {
 public:
  struct Options {
    std::int32_t num_blocks = 0;  // the null block included
    std::int32_t num_slots = 0;
    std::int32_t max_unfenced_jobs = 0;
    std::int32_t public_blocks = 0;  // set aside: no tenant's, and not of common
    std::vector<TenantShare> tenants;
  };
  BlockPool(const Options& options, PrefixCache& index);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_usable() const { return num_blocks() - 1 - public_blocks_; }
  std::int32_t num_in(BlockState state) const { return counts_[static_cast<std::size_t>(state)]; }
  BlockState state(base::BlockId block) const { return At(block).state; }
  std::uint64_t generation(base::BlockId block) const { return At(block).generation; }
  std::int32_t num_holders(base::BlockId block) const { return At(block).num_holders; }
  bool IsOwnedBy(base::BlockId block, base::SlotId slot) const {
    return At(block).state == BlockState::kOwned && At(block).holder_xor == slot.value() + 1;
  }

  // Has the processor fetch what is known of the block, for a caller that will soon ask.
  void Fetch(base::BlockId block) const { __builtin_prefetch(&At(block), /*rw=*/1); }

  // --- May a tenant take blocks? (README.md, "Whose blocks")
  // Pinned after taking stays within the reserve, or what goes over it fits in common.
  bool CanTake(base::TenantId tenant, std::int32_t count) const;
  // The same once all Retiring blocks have settled: growth waits for them rather than preempt.
  bool CanTakeSoon(base::TenantId tenant, std::int32_t count) const;
  // An admission that draws on common leaves a watermark of it, unless nobody draws on it yet.
  bool KeepsWatermark(base::TenantId tenant, std::int32_t count) const;
  static std::int32_t WatermarkOf(std::int32_t num_usable);
  // Both, if no other tenant held anything.
  bool CouldTakeAlone(base::TenantId tenant, std::int32_t count) const;
  // Blocks the tenant can ever hold.
  std::int32_t Capacity(base::TenantId tenant) const;
  // pinned - retiring > reserve: the tenant may lose a running request to another tenant's growth.
  bool IsOverReserve(base::TenantId tenant) const;
  // New shares, of the same tenants. False, and nothing changes, while more is pinned than they
  // allow. An isolated tenant's cache shrinks to its new reserve at once.
  bool TrySetShares(std::span<const TenantShare> shares);
  // Whether new shares could still be set after the tenant took that many.
  bool FitsShares(std::span<const TenantShare> shares, base::TenantId tenant,
                  std::int32_t count) const;

  // --- Moves
  // What is released from here on is released at `now`, which never goes back.
  void BeginPlan(base::Instant now);
  // Of the plan in the making, in order.
  std::span<const Eviction> evictions() const { return evictions_; }
  // Hands out blocks as Owned to `holder`, named by `job`, the one in the making. All or nothing;
  // evicts as need be.
  bool TryAllocate(base::TenantId tenant, base::SlotId holder, base::JobId job,
                   std::span<BlockRef> blocks);
  // One more holder of a block that is indexed or held, and which becomes (or stays) Sealed.
  BlockRef Hold(base::BlockId block, base::SlotId holder);
  // One holder less. The last one leaves the block Cached when it is indexed, else Free; Retiring
  // first while a job up to `last_job`, or one that named it earlier, is not fenced.
  void Release(base::BlockId block, base::SlotId holder, base::JobId last_job);
  // Owned -> Sealed: the job that filled it is complete. Requires: one holder.
  void Seal(base::BlockId block);
  // Owned -> Public: `holder`, its one holder, gives it to all who may read the public lane, for
  // ever. It is nobody's from here on, and a hold on it is paid by nobody.
  void MakePublic(base::BlockId block, base::SlotId holder);
  // Cached -> Free, and its entry goes.
  void DropCached(base::BlockId block);
  // Cached blocks released at `until` or before go, least recently released first, at most `most`
  // of each tenant.
  void ExpireCached(base::Instant until, std::int32_t most);
  // When the least recently released cached block was released; Never() when none is cached.
  base::Instant OldestCached() const;
  // Entries of a namespace, or of a tenant, go: Cached -> Free, Retiring frees at its fence, Sealed
  // stays held. Returns how many are free at once. Walks the whole pool: for flushes and for
  // closing a namespace only.
  std::int32_t DropNamespace(std::uint32_t namespace_index);
  std::int32_t DropEntriesOf(base::TenantId tenant);
  // A free block that held content of a flushed or expired entry and has not been handed out since,
  // or none: the plan in the making zeroes it, as no hand-out may come for long. Each is given
  // once.
  std::optional<base::BlockId> TakeToScrub();
  // No job up to this one touches memory: what retired for it settles.
  void Fence(base::JobId job);

  // --- Accounts, kept as blocks move
  std::int32_t num_exclusive(base::SlotId slot) const { return exclusive_[slot.value()]; }
  // Held by several of a tenant's sequences.
  std::int32_t num_shared(base::TenantId tenant) const { return accounts_[tenant.value()].shared; }
  std::int32_t num_pinned(base::TenantId tenant) const { return accounts_[tenant.value()].pinned; }
  std::int32_t num_cached(base::TenantId tenant) const {
    return accounts_[tenant.value()].cached.size;
  }
  std::int64_t num_evictions() const { return num_evictions_; }

  void CheckInvariants() const;

 private:
  friend struct SnapshotAccess;
  // One line of the processor's caches.
  struct alignas(64) Block {
    BlockState state = BlockState::kFree;
    BlockState after = BlockState::kFree;  // of a Retiring block
    bool must_scrub = false;   // its entry was flushed or expired: zeroed as soon as it is free
    base::TenantId tenant{0};  // of a block that is not Free
    std::int32_t num_holders = 0;
    std::uint32_t holder_xor = 0;  // of slot + 1
    std::uint32_t previous = 0, next = 0;
    std::uint64_t generation = 0;   // moves only at hand-out
    std::uint64_t released_at = 0;  // counts releases
    base::Instant released_when;
    base::JobId last_job;
  };
  static_assert(sizeof(Block) == 64);
  static constexpr std::uint32_t kNotListed = 0xffffffffu;
  // Block 0 is never on a list, so it stands for "none".
  struct List {
    std::uint32_t first = 0, last = 0;
    std::int32_t size = 0;
  };
  struct Account {
    TenantShare share;
    std::int32_t used = 0;    // not Free
    std::int32_t pinned = 0;  // Owned, Sealed, Retiring
    std::int32_t retiring = 0;
    std::int32_t shared = 0;
    List cached;  // least recently released first
    std::int32_t Excess() const;
  };

  const Block& At(base::BlockId block) const { return blocks_[block.value()]; }
  Block& At(base::BlockId block) { return blocks_[block.value()]; }
  Account& AccountOf(const Block& block) { return accounts_[block.tenant.value()]; }
  std::int32_t CommonInUse() const;
  bool FitsShare(const Account& account, std::int32_t pinned, std::int32_t others_excess,
                 std::int32_t count) const;

  void SetState(Block& block, BlockState state);
  void InsertAfter(List& list, std::uint32_t place, std::uint32_t item);
  void Remove(List& list, std::uint32_t item);
  void PushByRecency(List& list, std::uint32_t item);
  List& RetiringListOf(base::JobId job) { return retiring_[job.value() % retiring_.size()]; }

  base::BlockId TakeOne(base::TenantId tenant);
  void EvictFor(base::TenantId tenant);
  void FetchNextVictims(base::BlockId victim) const;
  base::TenantId ChooseEvictionTenant(base::TenantId tenant) const;
  void Settle(std::uint32_t item);
  void ForgetAndFree(std::uint32_t item);
  template <typename Pred>
  std::int32_t DropWhere(Pred is_wanted);
  void ListForScrub(base::BlockId block);
  void UnlistForScrub(base::BlockId block);
  void CheckLists() const;

  PrefixCache& index_;
  std::vector<Block> blocks_;
  std::vector<Account> accounts_;  // by tenant
  List free_;
  std::vector<List> retiring_;           // by job modulo its size
  std::vector<std::int32_t> exclusive_;  // by slot: blocks that only it holds
  std::int32_t counts_[kNumBlockStates] = {};
  std::int32_t public_blocks_ = 0;
  std::int32_t common_ = 0;
  std::int32_t watermark_ = 0;
  std::int64_t num_evictions_ = 0;
  std::uint64_t releases_ = 0;
  std::vector<base::BlockId> to_scrub_;      // free blocks
  std::vector<std::uint32_t> scrub_places_;  // by block: where it stands in to_scrub_
  base::JobId fenced_;
  base::Instant now_;
  std::vector<Eviction> evictions_;
};

}  // namespace pagoda::scheduler
