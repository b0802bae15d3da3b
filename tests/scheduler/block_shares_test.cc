// What one tenant's taking may do to another's blocks.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "scheduler/block_pool.h"
#include "scheduler/prefix_cache.h"
#include "tests/scheduler/dice.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler {
namespace {

using base::BlockId;
using base::JobId;
using base::SlotId;
using base::TenantId;
using testing::Dice;

constexpr TenantId kA{0}, kB{1}, kC{2};

// A pool shared by tenants, each with one slot and one namespace. Every job is fenced at once,
// unless the test holds fences back.
class Shares {
 public:
  Shares(std::int32_t num_usable, const std::vector<TenantShare>& tenants)
      : cache_({.num_blocks = num_usable + 1,
                .num_tenants = static_cast<std::int32_t>(tenants.size()),
                .max_namespaces = 1,
                .key_domain = OfBlocksOfFour()}),
        pool_({.num_blocks = num_usable + 1,
               .num_slots = static_cast<std::int32_t>(tenants.size()),
               .max_unfenced_jobs = 8,
               .tenants = tenants},
              cache_) {
    for (std::uint32_t t = 0; t < tenants.size(); ++t) {
      indexes_.push_back(&cache_.Open(TenantId(t), testing::KeyFor(std::to_string(t))));
    }
  }

  bool CanTake(TenantId tenant, std::int32_t count) const { return pool_.CanTake(tenant, count); }
  // Takes blocks and keeps them.
  std::vector<BlockId> Take(TenantId tenant, int count) {
    std::vector<BlockRef> refs(static_cast<std::size_t>(count));
    PAGODA_CHECK(pool_.TryAllocate(tenant, SlotId(tenant.value()), JobId(job_), refs));
    std::vector<BlockId> blocks;
    for (BlockRef& ref : refs) blocks.push_back(std::move(ref).IntoId());
    pool_.CheckInvariants();
    return blocks;
  }
  // Publishes what was taken under contents of its own, and lets it go, first to last.
  void Cache(TenantId tenant, const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) {
      NamespaceIndex& index = *indexes_[tenant.value()];
      const std::vector<base::TokenId> tokens = {++content_};
      const BlockKey root = index.keyer().root();
      pool_.Seal(block);
      cache_.Insert(index, block, index.keyer().Key(root, tokens), root, tokens);
    }
    Release(tenant, blocks);
  }
  void Release(TenantId tenant, const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) {
      pool_.Release(block, SlotId(tenant.value()), JobId(job_));
    }
    Fence();
  }
  void Fence() {
    pool_.Fence(JobId(job_++));
    pool_.CheckInvariants();
  }
  std::vector<BlockId> TakeAndCache(TenantId tenant, int count) {
    const auto blocks = Take(tenant, count);
    Cache(tenant, blocks);
    return blocks;
  }
  bool IsCached(BlockId block) const { return pool_.state(block) == BlockState::kCached; }
  int NumCached(const std::vector<BlockId>& blocks) const {
    int count = 0;
    for (const BlockId block : blocks) count += IsCached(block);
    return count;
  }
  BlockPool& pool() { return pool_; }
  NamespaceIndex& index(TenantId tenant) { return *indexes_[tenant.value()]; }
  PrefixCache& cache() { return cache_; }

 private:
  static KeyDomain OfBlocksOfFour() {
    KeyDomain domain;
    domain.block_size = 4;
    return domain;
  }

  PrefixCache cache_;
  BlockPool pool_;
  std::vector<NamespaceIndex*> indexes_;
  base::TokenId content_ = 0;
  std::uint64_t job_ = 1;
};

TEST(BlockShares, AFloodTakesNothingOfAReserve) {
  Shares shares(20, {{.reserve_blocks = 0}, {.reserve_blocks = 6}});
  const auto kept = shares.TakeAndCache(kB, 6);
  EXPECT_TRUE(shares.CanTake(kA, 14));
  EXPECT_FALSE(shares.CanTake(kA, 15));
  for (int turn = 0; turn < 50; ++turn) shares.TakeAndCache(kA, 14);
  EXPECT_EQ(shares.NumCached(kept), 6);
}

TEST(BlockShares, WhatIsCachedAboveAReserveGoesBeforeTheTakersOwn) {
  Shares shares(20, {{.reserve_blocks = 4}, {.reserve_blocks = 4}});
  const auto above = shares.TakeAndCache(kB, 12);
  const auto own = shares.TakeAndCache(kA, 4);
  shares.Take(kA, 6);  // 4 are free
  EXPECT_EQ(shares.NumCached(own), 4);
  EXPECT_EQ(shares.NumCached(above), 10);
  EXPECT_FALSE(shares.IsCached(above[0]));
  EXPECT_FALSE(shares.IsCached(above[1]));
}

TEST(BlockShares, TheTenantFurthestAboveItsReserveLosesFirstAndTiesGoToTheLowerOne) {
  Shares shares(20, {{}, {.reserve_blocks = 2}, {.reserve_blocks = 6}});
  const auto of_b = shares.TakeAndCache(kB, 8);   // 6 above
  const auto of_c = shares.TakeAndCache(kC, 10);  // 4 above
  shares.Take(kA, 2);                             // the free ones
  shares.Take(kA, 2);
  EXPECT_EQ(shares.NumCached(of_b), 6);
  EXPECT_EQ(shares.NumCached(of_c), 10);
  shares.Take(kA, 1);  // both are 4 above
  EXPECT_EQ(shares.NumCached(of_b), 5);
  shares.Take(kA, 1);
  EXPECT_EQ(shares.NumCached(of_c), 9);
}

TEST(BlockShares, ATenantBelowItsReserveEvictsTheBorrowersNotItsOwn) {
  Shares shares(12, {{.reserve_blocks = 0}, {.reserve_blocks = 8}});
  const auto own = shares.TakeAndCache(kB, 4);
  const auto borrowed = shares.Take(kA, 4);
  shares.Cache(kA, borrowed);
  shares.TakeAndCache(kA, 4);
  EXPECT_TRUE(shares.CanTake(kB, 8));
  shares.Take(kB, 4);
  EXPECT_EQ(shares.NumCached(own), 4);
}

TEST(BlockShares, CachedBlocksOfOthersMaySitOnAReserveAndPinnedOnesMayNot) {
  Shares shares(10, {{.reserve_blocks = 0}, {.reserve_blocks = 6}});
  const auto cached = shares.TakeAndCache(kA, 4);
  const auto more = shares.Take(kA, 4);
  EXPECT_EQ(shares.NumCached(cached), 4);  // six free blocks were enough
  EXPECT_FALSE(shares.CanTake(kA, 1));
  EXPECT_TRUE(shares.CanTake(kB, 6));
  shares.Take(kB, 6);
  EXPECT_EQ(shares.NumCached(cached), 0);
  EXPECT_EQ(more.size(), 4u);
}

TEST(BlockShares, AnIsolatedTenantAtItsReserveEvictsItsOwnEvenWhenBlocksAreFree) {
  Shares shares(20, {{}, {.reserve_blocks = 5, .isolated = true}});
  const auto own = shares.TakeAndCache(kB, 5);
  EXPECT_EQ(shares.pool().num_in(BlockState::kFree), 15);
  shares.Take(kB, 2);
  EXPECT_EQ(shares.NumCached(own), 3);
  EXPECT_FALSE(shares.IsCached(own[0]));
  EXPECT_TRUE(shares.CanTake(kB, 3));
  EXPECT_FALSE(shares.CanTake(kB, 4));
  EXPECT_EQ(shares.pool().num_in(BlockState::kFree), 15);
}

TEST(BlockShares, WhatAnIsolatedTenantDoesNotUseStaysItsOwn) {
  Shares shares(10, {{}, {.reserve_blocks = 4, .isolated = true}});
  shares.Take(kA, 6);
  EXPECT_FALSE(shares.CanTake(kA, 1));
  EXPECT_TRUE(shares.CanTake(kB, 4));
  shares.Take(kB, 4);
}

TEST(BlockShares, AHitThatPinsABlockAgainIsPaidLikeAHandOut) {
  Shares shares(8, {{.reserve_blocks = 0}, {.reserve_blocks = 4}});
  const auto cached = shares.TakeAndCache(kA, 4);
  shares.Take(kA, 4);
  // Every block of common is pinned: the cached one sits on the other's reserve.
  EXPECT_TRUE(shares.IsCached(cached[0]));
  EXPECT_FALSE(shares.CanTake(kA, 1));
}

// What fences will bring anyway is nothing that a victim of this tenant could give.
TEST(BlockShares, BlocksThatARunningJobStillNamesAreNotAboveTheReserve) {
  Shares shares(12, {{.reserve_blocks = 4}, {}});
  const auto blocks = shares.Take(kA, 6);
  EXPECT_TRUE(shares.pool().IsOverReserve(kA));
  for (std::size_t i = 0; i < 2; ++i) {
    shares.pool().Release(blocks[i], SlotId(kA.value()), JobId(1));
  }
  EXPECT_EQ(shares.pool().num_in(BlockState::kRetiring), 2);
  EXPECT_FALSE(shares.pool().IsOverReserve(kA));
  EXPECT_FALSE(shares.CanTake(kB, 8));
  EXPECT_TRUE(shares.pool().CanTakeSoon(kB, 8));
  EXPECT_FALSE(shares.pool().CanTakeSoon(kB, 9));
  shares.Fence();
  EXPECT_TRUE(shares.CanTake(kB, 8));
}

TEST(BlockShares, WhatATenantCouldTakeAloneDoesNotDependOnWhatOthersHold) {
  Shares shares(12, {{}, {.reserve_blocks = 2}});
  EXPECT_TRUE(shares.pool().CouldTakeAlone(kB, 12));
  shares.Take(kA, 10);
  EXPECT_TRUE(shares.pool().CouldTakeAlone(kB, 12));
  EXPECT_FALSE(shares.pool().CouldTakeAlone(kB, 13));
}

TEST(BlockShares, AFlushDropsOneTenantsEntriesAndListsThemForScrubbing) {
  Shares shares(12, {{}, {}});
  const auto of_a = shares.TakeAndCache(kA, 4), of_b = shares.TakeAndCache(kB, 4);
  EXPECT_EQ(shares.pool().DropEntriesOf(kA), 4);
  EXPECT_EQ(shares.NumCached(of_a), 0);
  EXPECT_EQ(shares.NumCached(of_b), 4);
  // One is handed out, and zeroed by that.
  shares.Take(kA, 1);
  int scrubbed = 0;
  while (const auto block = shares.pool().TakeToScrub()) {
    EXPECT_EQ(shares.pool().state(*block), BlockState::kFree);
    ++scrubbed;
  }
  EXPECT_EQ(scrubbed, 3);
  shares.pool().CheckInvariants();
}

// Tenants with random shares take, cache, hit and let go at random; the pool's own checks (E1, E2,
// and the invariants, which say that no reserve is used by another) hold throughout.
TEST(BlockShares, I3RandomTakersOfRandomSharesKeepEveryInvariant) {
  constexpr std::uint64_t kSeed = 9'031'977;
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(kSeed));
  std::int64_t evictions = 0;
  for (std::uint64_t run = 0; run < 200; ++run) {
    Dice dice(kSeed + run);
    const int usable = 6 + dice.Roll(30);
    std::vector<TenantShare> given(static_cast<std::size_t>(2 + dice.Roll(3)));
    int left = usable;
    for (TenantShare& share : given) {
      share.reserve_blocks = dice.Roll(left + 1);
      share.isolated = dice.OneIn(3);
      left -= share.reserve_blocks;
    }
    Shares shares(usable, given);
    std::vector<std::vector<BlockId>> held(given.size());
    for (int step = 0; step < 300; ++step) {
      const TenantId tenant(static_cast<std::uint32_t>(dice.Roll(static_cast<int>(given.size()))));
      std::vector<BlockId>& own = held[tenant.value()];
      const int count = 1 + dice.Roll(4);
      if (shares.CanTake(tenant, count) && dice.OneIn(2)) {
        const auto taken = shares.Take(tenant, count);
        own.insert(own.end(), taken.begin(), taken.end());
      } else if (!own.empty() && dice.OneIn(2)) {
        shares.Cache(tenant, own);
        own.clear();
      } else if (dice.OneIn(3)) {
        shares.Release(tenant, own);
        own.clear();
      }
    }
    evictions += shares.pool().num_evictions();
  }
  EXPECT_GT(evictions, 1'000);
}

}  // namespace
}  // namespace pagoda::scheduler
