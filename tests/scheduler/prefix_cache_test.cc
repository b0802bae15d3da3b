#include "scheduler/prefix_cache.h"

#include <gtest/gtest.h>

#include "tests/scheduler/requests.h"

namespace pagoda::scheduler {
namespace {

using base::BlockId;
using testing::Ascending;
using testing::KeyFor;

constexpr base::TenantId kTenant{0}, kOther{1};

PrefixCache::Options Options(std::int32_t max_namespaces = 2) {
  PrefixCache::Options options;
  options.num_blocks = 8;
  options.num_tenants = 2;
  options.max_namespaces = max_namespaces;
  options.key_domain.block_size = 4;
  return options;
}

// Indexes full blocks of `tokens` as blocks first, first + 1, ...
void InsertAll(PrefixCache& cache, NamespaceIndex& index, std::uint32_t first,
               std::span<const base::TokenId> tokens) {
  const auto keys = index.keyer().KeysOf(tokens);
  for (std::size_t k = 0; k < keys.size(); ++k) {
    cache.Insert(index, BlockId(first + static_cast<std::uint32_t>(k)), keys[k],
                 k == 0 ? index.keyer().root() : keys[k - 1], tokens.subspan(4 * k, 4));
  }
}

std::size_t NumHits(const NamespaceIndex& index, std::span<const base::TokenId> tokens) {
  std::vector<BlockId> hits(8);
  return index.Match(index.keyer().KeysOf(tokens), tokens, hits);
}

TEST(PrefixCache, MatchFindsTheLongestIndexedPrefix) {
  PrefixCache cache(Options());
  NamespaceIndex& index = cache.Open(kTenant, KeyFor("a"));
  const auto tokens = Ascending(1, 12);
  InsertAll(cache, index, 1, tokens);
  std::vector<BlockId> hits(8);
  EXPECT_EQ(index.Match(index.keyer().KeysOf(tokens), tokens, hits), 3u);
  EXPECT_EQ(hits[2], BlockId(3));
  cache.Forget(BlockId(2));
  EXPECT_EQ(NumHits(index, tokens), 1u);
  cache.CheckInvariants();
}

TEST(PrefixCache, D1ACollisionOfTheHashIsAMiss) {
  PrefixCache cache(Options());
  NamespaceIndex& index = cache.Open(kTenant, KeyFor("a"));
  const BlockKey root = index.keyer().root();
  const BlockKey collided{{42}};
  const auto stored = Ascending(1, 4), asked = Ascending(2, 4);
  cache.Insert(index, BlockId(1), collided, root, stored);
  EXPECT_EQ(index.Find(collided, root, stored), BlockId(1));
  EXPECT_EQ(index.Find(collided, root, asked), std::nullopt);
  EXPECT_EQ(index.Find(collided, BlockKey{{43}}, stored), std::nullopt);
  // Both can stand under one key.
  cache.Insert(index, BlockId(2), collided, root, asked);
  EXPECT_EQ(index.Find(collided, root, asked), BlockId(2));
  EXPECT_EQ(index.Find(collided, root, stored), BlockId(1));
  cache.CheckInvariants();
}

TEST(PrefixCache, NamespacesNeverSeeEachOther) {
  PrefixCache cache(Options());
  NamespaceIndex& a = cache.Open(kTenant, KeyFor("a"));
  NamespaceIndex& b = cache.Open(kTenant, KeyFor("b"));
  const auto tokens = Ascending(1, 8);
  InsertAll(cache, a, 1, tokens);
  EXPECT_EQ(NumHits(a, tokens), 2u);
  EXPECT_EQ(NumHits(b, tokens), 0u);
  // Not even with the other's key in hand.
  const auto keys = a.keyer().KeysOf(tokens);
  EXPECT_EQ(b.Find(keys[0], a.keyer().root(), std::span(tokens).first(4)), std::nullopt);
  EXPECT_EQ(b.FirstChild(a.keyer().root()), std::nullopt);
}

TEST(PrefixCache, ChildrenComeNewestFirst) {
  PrefixCache cache(Options());
  NamespaceIndex& index = cache.Open(kTenant, KeyFor("a"));
  const BlockKey root = index.keyer().root();
  for (std::uint32_t block = 1; block <= 3; ++block) {
    const auto tokens = Ascending(10 * block, block);
    cache.Insert(index, BlockId(block), index.keyer().Key(root, tokens), root, tokens);
  }
  cache.Forget(BlockId(2));
  auto child = index.FirstChild(root);
  EXPECT_EQ(child, BlockId(3));
  child = index.NextChild(*child);
  EXPECT_EQ(child, BlockId(1));
  EXPECT_EQ(index.NextChild(*child), std::nullopt);
}

TEST(PrefixCache, ANamespaceLivesWhileItIsReferencedOrHasEntries) {
  PrefixCache cache(Options());
  NamespaceIndex& a = cache.Open(kTenant, KeyFor("a"));
  InsertAll(cache, a, 1, Ascending(1, 4));
  cache.Close(a);
  EXPECT_NE(cache.FindNamespace(KeyFor("a")), nullptr);
  NamespaceIndex& b = cache.Open(kTenant, KeyFor("b"));
  EXPECT_TRUE(cache.NeedsRoom(kTenant, KeyFor("c")));
  EXPECT_FALSE(cache.NeedsRoom(kTenant, KeyFor("a")));
  EXPECT_EQ(cache.CloseableNamespace(kTenant), cache.namespace_of(BlockId(1)));
  cache.Forget(BlockId(1));
  EXPECT_EQ(cache.FindNamespace(KeyFor("a")), nullptr);
  EXPECT_FALSE(cache.NeedsRoom(kTenant, KeyFor("c")));
  cache.Close(b);
  EXPECT_EQ(cache.num_namespaces(), 0);
  cache.CheckInvariants();
}

TEST(PrefixCache, NoTenantCanCloseAnothersNamespace) {
  PrefixCache cache(Options());
  NamespaceIndex& kept = cache.Open(kOther, KeyFor("kept"));
  InsertAll(cache, kept, 1, Ascending(1, 4));
  cache.Close(kept);
  // More salts than a tenant may have namespaces: it closes its own only.
  for (const char* salt : {"a", "b", "c", "d"}) {
    const auto key = KeyFor(salt);
    if (cache.NeedsRoom(kTenant, key)) {
      const std::uint32_t closed = cache.CloseableNamespace(kTenant);
      for (std::uint32_t block = 2; block <= 5; ++block) {
        if (cache.namespace_of(BlockId(block)) == closed) cache.Forget(BlockId(block));
      }
    }
    NamespaceIndex& index = cache.Open(kTenant, key);
    InsertAll(cache, index, static_cast<std::uint32_t>(2 + (salt[0] - 'a')), Ascending(1, 4));
    cache.Close(index);
    cache.CheckInvariants();
  }
  EXPECT_EQ(NumHits(kept, Ascending(1, 4)), 1u);
  EXPECT_EQ(cache.num_namespaces(), 3);
}

TEST(PrefixCache, AnEpochIsOneTenantsAlone) {
  PrefixCache cache(Options());
  NamespaceIndex& index = cache.Open(kTenant, KeyFor("a"));
  NamespaceIndex& other = cache.Open(kOther, KeyFor("b"));
  const auto tokens = Ascending(1, 4);
  InsertAll(cache, other, 1, tokens);
  const auto before = index.keyer().KeysOf(tokens);
  cache.AdvanceEpoch(kTenant);
  EXPECT_NE(index.keyer().KeysOf(tokens), before);
  EXPECT_EQ(NumHits(other, tokens), 1u);
  EXPECT_EQ(cache.epoch(kTenant), cache.epoch(kOther) + 1);
  cache.CheckInvariants();
}

TEST(PrefixCache, ANewEpochChangesEveryKey) {
  PrefixCache cache(Options());
  NamespaceIndex& index = cache.Open(kTenant, KeyFor("a"));
  const auto tokens = Ascending(1, 4);
  const auto before = index.keyer().KeysOf(tokens);
  cache.AdvanceEpoch(kTenant);
  EXPECT_NE(index.keyer().KeysOf(tokens), before);
  EXPECT_EQ(index.keyer().epoch(), cache.epoch(kTenant));
}

TEST(PrefixCacheDeathTest, ANamespaceHasOneTenant) {
  PrefixCache cache(Options());
  cache.Open(kTenant, KeyFor("a"));
  EXPECT_DEATH(cache.Open(kOther, KeyFor("a")), "two tenants have one namespace");
}

TEST(PrefixCacheDeathTest, ABlockHasOneEntry) {
  PrefixCache cache(Options());
  NamespaceIndex& index = cache.Open(kTenant, KeyFor("a"));
  InsertAll(cache, index, 1, Ascending(1, 4));
  EXPECT_DEATH(InsertAll(cache, index, 1, Ascending(9, 4)), "!has_entry");
  EXPECT_DEATH(cache.Forget(BlockId(2)), "has_entry");
  EXPECT_DEATH(cache.AdvanceEpoch(kTenant), "num_entries_ == 0");
}

}  // namespace
}  // namespace pagoda::scheduler
