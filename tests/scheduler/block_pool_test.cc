#include "scheduler/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "scheduler/prefix_cache.h"
#include "tests/scheduler/dice.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler {
namespace {

using base::BlockId;
using base::JobId;
using base::SlotId;
using testing::Dice;

constexpr base::TenantId kTenant{0};
constexpr SlotId kFirst{0}, kSecond{1};

// A pool with its index, and blocks that are published under made-up contents.
struct Bench {
  explicit Bench(std::int32_t num_blocks)
      : cache(CacheOptions(num_blocks)),
        pool({.num_blocks = num_blocks,
              .num_slots = 4,
              .max_unfenced_jobs = 8,
              .tenants = {TenantShare{}}},
             cache),
        index(cache.Open(kTenant, testing::KeyFor("a"))) {}

  static PrefixCache::Options CacheOptions(std::int32_t num_blocks) {
    PrefixCache::Options options;
    options.num_blocks = num_blocks;
    options.max_namespaces = 1;
    options.key_domain.block_size = 4;
    return options;
  }
  BlockId Take(SlotId slot, std::uint64_t job) {
    BlockRef ref;
    PAGODA_CHECK(pool.TryAllocate(kTenant, slot, JobId(job), {&ref, 1}));
    return std::move(ref).IntoId();
  }
  void Hold(BlockId block, SlotId slot) { std::move(held = pool.Hold(block, slot)).IntoId(); }
  void Publish(BlockId block) {
    const std::vector<base::TokenId> tokens = {++content};
    const BlockKey root = index.keyer().root();
    pool.Seal(block);
    cache.Insert(index, block, index.keyer().Key(root, tokens), root, tokens);
  }

  PrefixCache cache;
  BlockPool pool;
  NamespaceIndex& index;
  BlockRef held;
  base::TokenId content = 0;
};

TEST(BlockPool, AllocatesAllOrNothing) {
  Bench bench(5);
  std::vector<BlockRef> refs(5);
  EXPECT_FALSE(bench.pool.TryAllocate(kTenant, kFirst, JobId(1), refs));
  EXPECT_EQ(bench.pool.num_in(BlockState::kFree), 4);
  ASSERT_TRUE(bench.pool.TryAllocate(kTenant, kFirst, JobId(1), std::span(refs).first(4)));
  std::set<BlockId> distinct;
  for (BlockRef& ref : std::span(refs).first(4)) distinct.insert(std::move(ref).IntoId());
  EXPECT_EQ(distinct.size(), 4u);
  EXPECT_FALSE(distinct.contains(base::kNullBlock));
  EXPECT_EQ(bench.pool.num_exclusive(kFirst), 4);
  bench.pool.CheckInvariants();
}

TEST(BlockPool, D8AReleasedBlockRetiresUntilTheFenceOfTheJobThatNamesIt) {
  Bench bench(3);
  const BlockId block = bench.Take(kFirst, 1);
  bench.pool.Release(block, kFirst, JobId(2));
  EXPECT_EQ(bench.pool.state(block), BlockState::kRetiring);
  bench.pool.Fence(JobId(1));
  EXPECT_EQ(bench.pool.state(block), BlockState::kRetiring);
  bench.pool.Fence(JobId(2));
  EXPECT_EQ(bench.pool.state(block), BlockState::kFree);
  bench.pool.CheckInvariants();
}

TEST(BlockPool, AHitBringsACachedOrRetiringBlockBack) {
  Bench bench(3);
  const BlockId block = bench.Take(kFirst, 1);
  bench.Publish(block);
  bench.pool.Release(block, kFirst, JobId(1));
  EXPECT_EQ(bench.pool.state(block), BlockState::kRetiring);
  bench.Hold(block, kSecond);
  EXPECT_EQ(bench.pool.state(block), BlockState::kSealed);
  bench.pool.Release(block, kSecond, JobId(1));
  bench.pool.Fence(JobId(1));
  EXPECT_EQ(bench.pool.state(block), BlockState::kCached);
  bench.Hold(block, kFirst);
  bench.Hold(block, kSecond);
  EXPECT_EQ(bench.pool.num_shared(kTenant), 1);
  EXPECT_EQ(bench.pool.num_exclusive(kFirst), 0);
  bench.pool.Release(block, kFirst, JobId(1));
  EXPECT_EQ(bench.pool.num_exclusive(kSecond), 1);
  bench.pool.CheckInvariants();
}

TEST(BlockPool, EvictsTheLeastRecentlyReleasedWhateverTheOrderOfFences) {
  Bench bench(4);
  const BlockId a = bench.Take(kFirst, 1), b = bench.Take(kFirst, 2), c = bench.Take(kFirst, 1);
  for (const BlockId block : {a, b, c}) bench.Publish(block);
  bench.pool.Release(b, kFirst, JobId(2));
  bench.pool.Release(c, kFirst, JobId(1));
  bench.pool.Release(a, kFirst, JobId(1));
  bench.pool.Fence(JobId(2));
  EXPECT_EQ(bench.Take(kFirst, 3), b);
  EXPECT_EQ(bench.Take(kFirst, 3), c);
  EXPECT_EQ(bench.Take(kFirst, 3), a);
  EXPECT_EQ(bench.pool.num_evictions(), 3);
  EXPECT_EQ(bench.cache.num_entries(), 0);
}

TEST(BlockPool, TheGenerationMovesAtHandOutOnly) {
  Bench bench(2);
  const BlockId block = bench.Take(kFirst, 1);
  const std::uint64_t generation = bench.pool.generation(block);
  bench.Publish(block);
  bench.pool.Release(block, kFirst, JobId(1));
  bench.pool.Fence(JobId(1));
  bench.Hold(block, kFirst);
  EXPECT_EQ(bench.pool.generation(block), generation);
  bench.pool.Release(block, kFirst, JobId(1));
  EXPECT_EQ(bench.Take(kFirst, 2), block);
  EXPECT_EQ(bench.pool.generation(block), generation + 1);
}

TEST(BlockPool, ADropOfEntriesFreesCachedBlocksAndLeavesHeldOnes) {
  Bench bench(4);
  const BlockId held = bench.Take(kFirst, 1), cached = bench.Take(kFirst, 1),
                retiring = bench.Take(kFirst, 2);
  for (const BlockId block : {held, cached, retiring}) bench.Publish(block);
  bench.pool.Release(cached, kFirst, JobId(1));
  bench.pool.Fence(JobId(1));
  bench.pool.Release(retiring, kFirst, JobId(2));
  EXPECT_EQ(bench.pool.DropEntriesOf(kTenant), 1) << "what is held or on its way is not free yet";
  EXPECT_EQ(bench.pool.state(cached), BlockState::kFree);
  EXPECT_EQ(bench.pool.state(held), BlockState::kSealed);
  bench.pool.Fence(JobId(2));
  EXPECT_EQ(bench.pool.state(retiring), BlockState::kFree);
  bench.pool.Release(held, kFirst, JobId(2));
  EXPECT_EQ(bench.pool.state(held), BlockState::kFree);
  bench.pool.CheckInvariants();
}

TEST(BlockPool, TheWatermarkIsWaivedForTheFirstTaker) {
  Bench bench(101);
  EXPECT_TRUE(bench.pool.KeepsWatermark(kTenant, 100));
  const BlockId block = bench.Take(kFirst, 1);
  EXPECT_TRUE(bench.pool.KeepsWatermark(kTenant, 97));
  EXPECT_FALSE(bench.pool.KeepsWatermark(kTenant, 98));
  EXPECT_TRUE(bench.pool.CanTake(kTenant, 99));
  bench.pool.Release(block, kFirst, JobId(1));
}

TEST(BlockPoolDeathTest, MisuseStopsTheProcess) {
  Bench bench(4);
  const BlockId block = bench.Take(kFirst, 1);
  EXPECT_DEATH(bench.pool.Release(block, kSecond, JobId(1)), "did not hold it");
  EXPECT_DEATH(bench.Hold(block, kSecond), "kOwned");
  EXPECT_DEATH(
      {
        bench.pool.Release(block, kFirst, JobId(1));
        bench.pool.Release(block, kFirst, JobId(1));
      },
      "kOwned");
  EXPECT_DEATH(
      {
        BlockRef ref;
        PAGODA_CHECK(bench.pool.TryAllocate(kTenant, kFirst, JobId(1), {&ref, 1}));
      },
      "a block reference was dropped");
}

// The pool as plain maps: what each block is, by the words of README.md alone.
struct NaivePool {
  struct Entry {
    BlockState state = BlockState::kFree;
    bool indexed = false;
    std::multiset<std::uint32_t> holders;
    std::uint64_t last_job = 0;
    std::uint64_t released_at = 0;
  };
  std::map<std::uint32_t, Entry> blocks;
  std::uint64_t fenced = 0, clock = 0;

  int Count(BlockState state) const {
    return static_cast<int>(std::ranges::count_if(
        blocks, [&](const auto& item) { return item.second.state == state; }));
  }
  std::uint32_t OldestCached() const {
    std::uint32_t oldest = 0;
    for (const auto& [id, entry] : blocks) {
      if (entry.state != BlockState::kCached) continue;
      if (oldest == 0 || entry.released_at < blocks.at(oldest).released_at) oldest = id;
    }
    return oldest;
  }
  void Settle(Entry& entry) {
    if (entry.holders.empty() && entry.state != BlockState::kFree && entry.last_job <= fenced) {
      entry.state = entry.indexed ? BlockState::kCached : BlockState::kFree;
    }
  }
};

class RandomPool {
 public:
  RandomPool(std::uint64_t seed, std::int32_t num_blocks) : dice_(seed), bench_(num_blocks) {
    for (std::int32_t i = 1; i < num_blocks; ++i) naive_.blocks[static_cast<std::uint32_t>(i)];
  }

  void Step() {
    switch (dice_.Roll(5)) {
      case 0:
        return Take();
      case 1:
        return Publish();
      case 2:
        return Share();
      case 3:
        return Release();
      default:
        return Fence();
    }
  }
  void Compare() {
    for (const auto& [id, entry] : naive_.blocks) {
      ASSERT_EQ(bench_.pool.state(BlockId(id)), entry.state) << "block " << id;
      ASSERT_EQ(bench_.cache.has_entry(BlockId(id)), entry.indexed) << "block " << id;
      ASSERT_EQ(bench_.pool.num_holders(BlockId(id)), static_cast<int>(entry.holders.size()));
    }
    ASSERT_LE(bench_.cache.num_entries(), bench_.pool.num_usable());
  }
  void CheckInvariants() const { bench_.pool.CheckInvariants(); }

 private:
  using Entry = NaivePool::Entry;
  template <typename Pred>
  std::uint32_t Pick(Pred wanted) {
    std::vector<std::uint32_t> ids;
    for (const auto& [id, entry] : naive_.blocks) {
      if (wanted(entry)) ids.push_back(id);
    }
    return ids.empty() ? 0
                       : ids[static_cast<std::size_t>(dice_.Roll(static_cast<int>(ids.size())))];
  }
  void Take() {
    const bool possible = naive_.Count(BlockState::kFree) + naive_.Count(BlockState::kCached) > 0;
    const std::uint32_t victim = naive_.Count(BlockState::kFree) == 0 ? naive_.OldestCached() : 0;
    const SlotId slot(static_cast<std::uint32_t>(dice_.Roll(4)));
    BlockRef ref;
    ASSERT_EQ(bench_.pool.TryAllocate(kTenant, slot, JobId(job_ + 1), {&ref, 1}), possible);
    if (!possible) return;
    const std::uint32_t id = std::move(ref).IntoId().value();
    if (victim != 0) {
      ASSERT_EQ(id, victim);
    }
    ASSERT_TRUE(victim != 0 || naive_.blocks[id].state == BlockState::kFree);
    naive_.blocks[id] = {BlockState::kOwned, false, {slot.value()}, job_ + 1, 0};
  }
  void Publish() {
    const std::uint32_t id = Pick([](const Entry& e) { return e.state == BlockState::kOwned; });
    if (id == 0) return;
    bench_.Publish(BlockId(id));
    naive_.blocks[id].state = BlockState::kSealed;
    naive_.blocks[id].indexed = true;
  }
  void Share() {
    const std::uint32_t id = Pick([](const Entry& e) { return e.indexed && e.holders.size() < 3; });
    if (id == 0) return;
    const std::uint32_t slot = static_cast<std::uint32_t>(dice_.Roll(4));
    if (naive_.blocks[id].holders.contains(slot)) return;
    bench_.Hold(BlockId(id), SlotId(slot));
    naive_.blocks[id].holders.insert(slot);
    naive_.blocks[id].state = BlockState::kSealed;
  }
  void Release() {
    const std::uint32_t id = Pick([](const Entry& e) { return !e.holders.empty(); });
    if (id == 0) return;
    Entry& entry = naive_.blocks[id];
    const std::uint32_t slot = *entry.holders.begin();
    bench_.pool.Release(BlockId(id), SlotId(slot), JobId(job_));
    entry.holders.erase(entry.holders.begin());
    entry.last_job = std::max(entry.last_job, job_);
    if (!entry.holders.empty()) return;
    entry.released_at = ++naive_.clock;
    entry.state = BlockState::kRetiring;
    naive_.Settle(entry);
  }
  void Fence() {
    if (dice_.OneIn(2) && job_ < naive_.fenced + 5) ++job_;
    if (naive_.fenced >= job_) return;
    bench_.pool.Fence(JobId(++naive_.fenced));
    for (auto& [id, entry] : naive_.blocks) naive_.Settle(entry);
  }

  Dice dice_;
  Bench bench_;
  NaivePool naive_;
  std::uint64_t job_ = 0;
};

TEST(BlockPool, I3RandomMovesKeepTheAccountsOfANaivePool) {
  constexpr std::uint64_t kSeed = 20'261'129;
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(kSeed));
  for (std::uint64_t run = 0; run < 100; ++run) {
    RandomPool pool(kSeed + run, 2 + static_cast<std::int32_t>(run % 17));
    for (int step = 0; step < 10'000; ++step) {
      pool.Step();
      if (step % 8 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(pool.Compare()) << "run " << run << " step " << step;
      pool.CheckInvariants();
    }
  }
}

}  // namespace
}  // namespace pagoda::scheduler
