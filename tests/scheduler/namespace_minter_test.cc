#include "scheduler/namespace_minter.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/field_error.h"
#include "tests/base/hex.h"

namespace pagoda::scheduler {
namespace {

using pagoda::testing::Hex;

const NamespaceMinter kMinter(NamespaceMinter::Secret{1, 2, 3});

// Expected digests: tests/oracle/block_keys.py.
TEST(NamespaceMinter, DerivesKeysAsWrittenDown) {
  EXPECT_EQ(Hex(kMinter.Mint("default", std::nullopt)->bytes()),
            "8b3960f2501ab20fef13025563677b21607c21829df6fd2e2917cc49097147b5");
  EXPECT_EQ(Hex(kMinter.Mint("default", "pepper")->bytes()),
            "3a700043bf56568cf62eeeecd83b4681cf347aefa166920a5a66a63b302d156c");
  EXPECT_EQ(Hex(kMinter.MintForOneRequest(9).bytes()),
            "2a03387cbf3076e1d6cffc0b986957f50c5e0a1c0dcdc03a6d8013247c1a6cc6");
}

TEST(NamespaceMinter, TenantSaltAndTheirBoundaryAllMatter) {
  std::set<NamespaceKey> keys;
  keys.insert(*kMinter.Mint("ab", "c"));
  keys.insert(*kMinter.Mint("a", "bc"));
  keys.insert(*kMinter.Mint("a", ""));
  keys.insert(*kMinter.Mint("a", std::nullopt));
  keys.insert(*kMinter.Mint("b", std::nullopt));
  keys.insert(*NamespaceMinter(NamespaceMinter::Secret{4}).Mint("a", std::nullopt));
  keys.insert(kMinter.MintForOneRequest(1));
  keys.insert(kMinter.MintForOneRequest(2));
  EXPECT_EQ(keys.size(), 8u);
}

TEST(NamespaceMinter, RefusesASaltOverTheLimitByName) {
  EXPECT_TRUE(kMinter.Mint("a", std::string(NamespaceMinter::kMaxSaltBytes, 'x')).ok());
  const auto status = kMinter.Mint("a", std::string(NamespaceMinter::kMaxSaltBytes + 1, 'x'));
  EXPECT_EQ(base::FieldOf(status.status()), "cache_salt");
}

}  // namespace
}  // namespace pagoda::scheduler
