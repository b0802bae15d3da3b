#include "server/core/request_names.h"

#include <gtest/gtest.h>

#include <set>

namespace pagoda::server {
namespace {

constexpr base::TenantId kOne{0}, kOther{1};

TEST(RequestNames, WhatATenantSeesDoesNotDependOnOthersRequests) {
  RequestNames alone({7}, 2), beside({7}, 2);
  for (int i = 0; i < 20; ++i) {
    for (int others = 0; others < i % 3; ++others) beside.NextOf(kOther);
    if (i == 5) beside.NextOfServer();
    const RequestName wanted = alone.NextOf(kOne), found = beside.NextOf(kOne);
    EXPECT_EQ(found.wire_id, wanted.wire_id);
    EXPECT_EQ(found.drawn_seed, wanted.drawn_seed);
  }
}

TEST(RequestNames, NoTwoAreEqualWhoeversTheyAre) {
  RequestNames names({7}, 2);
  std::set<std::uint64_t> ids, seeds;
  std::set<std::string> wire_ids;
  for (int i = 0; i < 300; ++i) {
    const RequestName name = i % 3 == 0   ? names.NextOf(kOne)
                             : i % 3 == 1 ? names.NextOf(kOther)
                                          : names.NextOfServer();
    ids.insert(name.id.value());
    seeds.insert(name.drawn_seed);
    wire_ids.insert(name.wire_id);
    EXPECT_EQ(name.wire_id.size(), 16u);
  }
  EXPECT_EQ(ids.size(), 300u);
  EXPECT_EQ(seeds.size(), 300u);
  EXPECT_EQ(wire_ids.size(), 300u);
}

TEST(RequestNames, AnotherSecretGivesOtherNames) {
  RequestNames names({7}, 1), others({8}, 1);
  const RequestName name = names.NextOf(kOne), other = others.NextOf(kOne);
  EXPECT_NE(name.wire_id, other.wire_id);
  EXPECT_NE(name.drawn_seed, other.drawn_seed);
}

}  // namespace
}  // namespace pagoda::server
