#include "scheduler/block_keys.h"

#include <gtest/gtest.h>

#include <set>

#include "scheduler/namespace_minter.h"
#include "tests/base/hex.h"
#include "tests/scheduler/requests.h"

namespace pagoda::scheduler {
namespace {

using pagoda::testing::Hex;
using testing::Ascending;
using testing::KeyFor;

KeyDomain Domain() {
  KeyDomain domain;
  domain.model_digest.fill(9);
  domain.kv_type = base::KvType::kF32;
  domain.block_size = 4;
  domain.position_scheme = "rope";
  domain.numerics_id = "cpu";
  domain.epoch = 5;
  return domain;
}

// Expected digests: tests/oracle/block_keys.py.
TEST(BlockKeyer, DerivesKeysAsWrittenDown) {
  const BlockKeyer keyer(KeyFor(std::nullopt), Domain());
  const auto tokens = Ascending(1, 10);
  const auto keys = keyer.KeysOf(tokens);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(Hex(keyer.root().bytes),
            "e3b37b7d31104e349b2f92e396165d6b0e8fae65f22d0bf3e13a0ee1bc6b9671");
  EXPECT_EQ(Hex(keys[0].bytes), "5ccdf40bbdd67fb814fdfce2ed28e3115372b29fa825574eb6a5050e9b71fc88");
  EXPECT_EQ(Hex(keys[1].bytes), "b14e7aef1ed01d0f6a7bb891e8003d540675592561611d7453b7df69b8612f28");
  EXPECT_EQ(Hex(keyer.Key(keys[0], std::span(tokens).subspan(4, 2)).bytes),
            "f9af2c1e974922d6cd1ee6bb4da5b12413c6403dd4f09f07c4e381f87bff423b");
}

TEST(BlockKeyer, EveryFieldOfTheDomainChangesTheKey) {
  std::set<BlockKey> roots;
  const auto add = [&](auto change) {
    KeyDomain domain = Domain();
    change(domain);
    roots.insert(BlockKeyer(KeyFor(std::nullopt), domain).root());
  };
  add([](KeyDomain&) {});
  add([](KeyDomain& d) { d.model_digest[31] = 1; });
  add([](KeyDomain& d) { d.kv_group = 1; });
  add([](KeyDomain& d) { d.kv_type = base::KvType::kBf16; });
  add([](KeyDomain& d) { d.layout_version = 2; });
  add([](KeyDomain& d) { d.block_size = 8; });
  add([](KeyDomain& d) { d.position_scheme = "rope2"; });
  add([](KeyDomain& d) { d.numerics_id = "cuda"; });
  add([](KeyDomain& d) { d.epoch = 6; });
  add([](KeyDomain& d) { std::swap(d.position_scheme, d.numerics_id); });
  EXPECT_EQ(roots.size(), 10u);
  EXPECT_NE(BlockKeyer(KeyFor("salt"), Domain()).root(),
            BlockKeyer(KeyFor("tlas"), Domain()).root());
}

TEST(BlockKeyer, ExtendingGivesTheSameKeysAsAtOnce) {
  const BlockKeyer keyer(KeyFor(std::nullopt), Domain());
  const auto tokens = Ascending(1, 19);
  std::vector<BlockKey> keys;
  for (std::size_t length = 0; length <= tokens.size(); ++length) {
    keyer.ExtendKeys(std::span(tokens).first(length), keys);
    EXPECT_EQ(keys.size(), length / 4);
  }
  EXPECT_EQ(keys, keyer.KeysOf(tokens));
}

}  // namespace
}  // namespace pagoda::scheduler
