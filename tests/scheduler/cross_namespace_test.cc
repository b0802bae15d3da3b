// No block is found by a namespace that did not publish it, and none whose content is not the one
// that was asked for, however weak the hash.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <vector>

#include "scheduler/namespace_minter.h"
#include "scheduler/prefix_cache.h"
#include "tests/scheduler/dice.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler {
namespace {

using base::BlockId;
using testing::Ascending;
using testing::Dice;

constexpr base::TenantId kTenant{0};

PrefixCache::Options Options(std::int32_t num_blocks, std::int32_t max_namespaces) {
  PrefixCache::Options options;
  options.num_blocks = num_blocks;
  options.max_namespaces = max_namespaces;
  options.key_domain.block_size = 4;
  return options;
}

NamespaceKey RandomKey(const NamespaceMinter& minter, Dice& dice) {
  const std::string tenant = std::to_string(dice.Next() % 50);
  const std::string salt = std::to_string(dice.Next());
  return *minter.Mint(tenant, salt);
}

TEST(CrossNamespace, AMillionPairsOfRandomNamespacesReadNothingOfEachOther) {
  constexpr std::uint64_t kSeed = 4'711;
  constexpr std::uint32_t kNamespaces = 1'001;  // a million ordered pairs and some
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Dice dice(kSeed);
  const NamespaceMinter minter(NamespaceMinter::Secret{9, 8, 7});
  PrefixCache cache(Options(kNamespaces + 1, kNamespaces));
  const auto tokens = Ascending(1, 4);
  std::vector<const NamespaceIndex*> indexes;
  std::vector<BlockKey> keys, roots;
  for (std::uint32_t i = 0; i < kNamespaces; ++i) {
    NamespaceIndex& index = cache.Open(kTenant, RandomKey(minter, dice));
    roots.push_back(index.keyer().root());
    keys.push_back(index.keyer().Key(roots.back(), tokens));
    cache.Insert(index, BlockId(i + 1), keys.back(), roots.back(), tokens);
    indexes.push_back(&index);
  }
  std::int64_t num_pairs = 0, num_reads = 0, num_own = 0;
  for (std::uint32_t reader = 0; reader < kNamespaces; ++reader) {
    for (std::uint32_t owner = 0; owner < kNamespaces; ++owner) {
      // With the owner's key and root in hand, and its own.
      const auto found = indexes[reader]->Find(keys[owner], roots[owner], tokens);
      const bool has_child = indexes[reader]->FirstChild(roots[owner]).has_value();
      if (reader == owner) {
        num_own += found == BlockId(owner + 1) && has_child;
        continue;
      }
      ++num_pairs;
      num_reads += found.has_value() || has_child || keys[reader] == keys[owner];
    }
  }
  EXPECT_GE(num_pairs, 1'000'000);
  EXPECT_EQ(num_reads, 0);
  EXPECT_EQ(num_own, kNamespaces);
}

// The index looks at one byte of every key, so that most look-ups meet keys that are equal and
// contents that are not.
TEST(CrossNamespace, AMillionForcedCollisionsGiveNoWrongHit) {
  constexpr std::uint64_t kSeed = 1'126;
  constexpr std::uint32_t kBlocks = 512;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Dice dice(kSeed);
  PrefixCache::Options options = Options(kBlocks + 1, 2);
  options.num_key_bytes = 1;
  PrefixCache cache(options);
  NamespaceIndex& a = cache.Open(kTenant, testing::KeyFor("a"));
  NamespaceIndex& b = cache.Open(kTenant, testing::KeyFor("b"));

  // What the blocks hold, as plain maps: (namespace, parent, tokens) -> block.
  using Content = std::tuple<std::uint32_t, BlockKey, std::vector<base::TokenId>>;
  std::map<Content, BlockId> held;
  std::vector<int> num_with_byte(256, 0);
  const auto random_tokens = [&] {
    std::vector<base::TokenId> tokens(4);
    for (auto& token : tokens) token = static_cast<base::TokenId>(dice.Roll(20));
    return tokens;
  };
  for (std::uint32_t block = 1; block <= kBlocks;) {
    NamespaceIndex& index = dice.OneIn(2) ? a : b;
    const auto tokens = random_tokens();
    const BlockKey root = index.keyer().root();
    const BlockKey key = index.keyer().Key(root, tokens);
    if (!held.emplace(Content(index.place(), root, tokens), BlockId(block)).second) continue;
    cache.Insert(index, BlockId(block++), key, root, tokens);
    ++num_with_byte[key.bytes[0]];
  }
  cache.CheckInvariants();

  std::int64_t num_collisions = 0, num_hits = 0, num_wrong = 0;
  while (num_collisions < 1'000'000) {
    NamespaceIndex& index = dice.OneIn(2) ? a : b;
    const auto tokens = random_tokens();
    const BlockKey root = index.keyer().root();
    const BlockKey key = index.keyer().Key(root, tokens);
    const auto expected = held.find(Content(index.place(), root, tokens));
    const auto found = index.Find(key, root, tokens);
    num_hits += found.has_value();
    num_wrong += found != (expected == held.end() ? std::nullopt : std::optional(expected->second));
    // Every other entry with this byte was met, or would have been, as equal.
    num_collisions += num_with_byte[key.bytes[0]] - (expected != held.end());
  }
  EXPECT_EQ(num_wrong, 0);
  EXPECT_GT(num_hits, 0);
}

}  // namespace
}  // namespace pagoda::scheduler
