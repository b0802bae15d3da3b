#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>

#include "base/field_error.h"
#include "base/token_digest.h"
#include "server/core/pipeline.h"
#include "server/core/refusal.h"
#include "server/core/text_calls.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

using ::testing::HasSubstr;

// Alpha and beta, each with four requests and capacity for sixteen blocks of four tokens.
class ChangingTenants : public ::testing::Test {
 protected:
  static World::Options Options() {
    World::Options options;
    options.tenants = {{.name = "alpha", .token_digests = {}, .certificate_names = {}},
                       {.name = "beta", .token_digests = {}, .certificate_names = {}}};
    return options;
  }

  TenantChange Change(std::int32_t capacity_blocks, std::int64_t max_requests) {
    TenantChange change;
    for (const char* const name : {"alpha", "beta"}) {
      change.configs.push_back({.name = name, .weight = 2});
      change.limits.push_back(world_.pipeline.model().limits);
      change.limits.back().capacity_blocks = capacity_blocks;
      change.bounds.push_back({name, max_requests, 1000});
    }
    return change;
  }
  void SetReconfiguring(bool is) {
    engine::EngineStats stats;
    stats.is_reconfiguring = is;
    world_.engine.SetStats(stats);
  }
  // The code with which a request of so many tokens ends before it reaches the engine; OK when it
  // got there.
  absl::Status Try(std::int32_t prompt_tokens, std::int32_t max_tokens) {
    FakeReader reader;
    auto stream = world_.pipeline.Start(
        world_.caller,
        World::Ids(std::vector<base::TokenId>(static_cast<std::size_t>(prompt_tokens), 1),
                   max_tokens),
        reader);
    if (!stream.ok()) return stream.status();
    world_.RunText();
    world_.engine.ReadMail();
    if (world_.engine.num_live() > 0) {
      world_.engine.Finish((*stream)->identity().id, scheduler::FinishReason::kStop);
      world_.RunText();
    }
    return EndOf(**stream);
  }

  // Reads it to its end, which closes it.
  static absl::Status EndOf(ResponseStream& stream) {
    ReplyPart part;
    while (stream.Take(part) == ResponseStream::Taken::kPart) {
    }
    return part.end.has_value() ? part.end->status : absl::InternalError("no end");
  }

  World world_{Options()};
};

TEST_F(ChangingTenants, ANarrowerChangeHoldsAtTheGateBeforeTheEngineHasIt) {
  SetReconfiguring(true);
  EXPECT_TRUE(Try(20, 20).ok());
  ASSERT_TRUE(world_.pipeline.ChangeTenants(Change(8, 1)).ok());
  EXPECT_EQ(world_.engine.reconfigured().size(), 2u);
  EXPECT_FALSE(world_.pipeline.SettleTenants());
  const absl::Status refused = Try(20, 20);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("10"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("8"));
  EXPECT_TRUE(Try(10, 10).ok());
}

TEST_F(ChangingTenants, AWiderChangeHoldsOnlyOnceTheEngineHasIt) {
  ASSERT_TRUE(world_.pipeline.ChangeTenants(Change(8, 1)).ok());
  SetReconfiguring(true);
  ASSERT_TRUE(world_.pipeline.ChangeTenants(Change(12, 2)).ok());
  EXPECT_FALSE(Try(20, 20).ok());
  EXPECT_FALSE(world_.pipeline.SettleTenants());
  SetReconfiguring(false);
  EXPECT_TRUE(world_.pipeline.SettleTenants());
  EXPECT_TRUE(Try(20, 20).ok());
}

// Whichever of two changes the engine holds, what is let in fits it.
TEST_F(ChangingTenants, TwoChangesOnTheWayLetInOnlyWhatFitsBoth) {
  SetReconfiguring(true);
  ASSERT_TRUE(world_.pipeline.ChangeTenants(Change(8, 1)).ok());
  ASSERT_TRUE(world_.pipeline.ChangeTenants(Change(12, 2)).ok());
  EXPECT_FALSE(Try(20, 20).ok());
  SetReconfiguring(false);
  EXPECT_TRUE(world_.pipeline.SettleTenants());
  EXPECT_TRUE(Try(20, 20).ok());
}

TEST_F(ChangingTenants, AChangeThatTheEngineRefusesChangesNothing) {
  world_.engine.AnswerReconfigure(absl::InvalidArgumentError("no"));
  EXPECT_EQ(world_.pipeline.ChangeTenants(Change(8, 1)).message(), "no");
  EXPECT_TRUE(world_.pipeline.SettleTenants());
  EXPECT_TRUE(Try(20, 20).ok());
}

// A request that was checked against the old limits is in the engine before that hears of new ones.
TEST_F(ChangingTenants, AChangeWaitsForTheRequestsThatWereCheckedBeforeIt) {
  FakeReader reader;
  auto stream = world_.pipeline.Start(world_.caller,
                                      World::Ids(std::vector<base::TokenId>(20, 1), 20), reader);
  ASSERT_TRUE(stream.ok());
  std::jthread operators([&] { EXPECT_TRUE(world_.pipeline.ChangeTenants(Change(8, 1)).ok()); });
  EXPECT_TRUE(world_.engine.reconfigured().empty());
  world_.RunText();
  operators.join();
  EXPECT_EQ(world_.engine.reconfigured().size(), 2u);
  world_.engine.ReadMail();
  EXPECT_EQ(world_.engine.num_live(), 1u);
  world_.engine.Finish((*stream)->identity().id, scheduler::FinishReason::kStop);
  world_.RunText();
  EXPECT_TRUE(EndOf(**stream).ok());
}

TEST_F(ChangingTenants, KeysAreMadeUnderTheEpochOfTheirTenant) {
  World::Options options;
  options.tenants = {{.name = "alpha",
                      .token_digests = {base::DigestOfToken("alpha-token")},
                      .certificate_names = {}},
                     {.name = "beta",
                      .token_digests = {base::DigestOfToken("beta-token")},
                      .certificate_names = {}}};
  World world(options);
  for (const auto& [header, epoch] :
       {std::pair("Bearer alpha-token", 7u), std::pair("Bearer beta-token", 8u)}) {
    const auto caller =
        world.authenticator.Authenticate({.authorization = {header}, .certificate_names = {}});
    FakeReader reader;
    auto stream = world.pipeline.Start(*caller, World::Ids({1, 2, 3, 4, 5}), reader);
    ASSERT_TRUE(stream.ok());
    world.RunText();
    world.engine.ReadMail();
    const base::RequestId id = (*stream)->identity().id;
    EXPECT_EQ(world.engine.request(id).epoch(), epoch);
    world.engine.Finish(id, scheduler::FinishReason::kStop);
    world.RunText();
    EXPECT_TRUE(EndOf(**stream).ok());
  }
}

// The ids that alpha sees and the seeds that it is given, in two lives: beside beta and without.
TEST_F(ChangingTenants, WhatAReplyShowsDoesNotCountOthersRequests) {
  World::Options options;
  for (const char* name : {"alpha", "beta"}) {
    options.tenants.push_back({.name = name,
                               .token_digests = {base::DigestOfToken(absl::StrCat(name, "-token"))},
                               .certificate_names = {}});
  }
  const auto life = [&](int num_of_beta) {
    World world(options);
    std::vector<std::pair<std::string, std::uint64_t>> seen;
    const auto ask = [&](const char* header) {
      const auto caller =
          world.authenticator.Authenticate({.authorization = {header}, .certificate_names = {}});
      FakeReader reader;
      auto stream = world.pipeline.Start(*caller, World::Ids({1}), reader);
      PAGODA_CHECK(stream.ok());
      world.RunText();
      world.engine.ReadMail();
      const base::RequestId id = (*stream)->identity().id;
      std::pair shown((*stream)->identity().wire_id, world.engine.request(id).sampling().seed);
      world.engine.Finish(id, scheduler::FinishReason::kStop);
      world.RunText();
      EXPECT_TRUE(EndOf(**stream).ok());
      return shown;
    };
    for (int i = 0; i < 4; ++i) {
      seen.push_back(ask("Bearer alpha-token"));
      for (int other = 0; other < num_of_beta; ++other) ask("Bearer beta-token");
    }
    return seen;
  };
  EXPECT_EQ(life(3), life(0));
}

TEST_F(ChangingTenants, ATenantsTextCallsAreItsShareOfAll) {
  const auto call = [&] {
    return MakeDetokenizeCall({0}, true, world_.pipeline.model(),
                              [](const absl::StatusOr<std::string>&) {});
  };
  EXPECT_TRUE(world_.pipeline.PostTextCall(world_.caller, call()).ok());
  const absl::Status refused = world_.pipeline.PostTextCall(world_.caller, call());
  EXPECT_EQ(base::ReasonOf(refused), reason::kQueueFull);
  EXPECT_EQ(TenantOf(refused), "alpha");
  world_.RunText();
}

}  // namespace
}  // namespace pagoda::server
