#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/check.h"
#include "tests/simulation/child_process.h"
#include "tests/simulation/runner.h"
#include "tests/simulation/shrinker.h"

namespace pagoda::simulation {
namespace {

// With a sanitizer a step takes seven times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kNumSteps = 500'000;
#elif defined(__has_feature)
constexpr std::int64_t kNumSteps = __has_feature(address_sanitizer) ? 500'000 : 2'000'000;
#else
constexpr std::int64_t kNumSteps = 2'000'000;
#endif

TEST(Simulation, EveryStepKeepsEveryInvariantAndTheRunMeetsWhatItShould) {
  const RunOptions options{.first_seed = 1, .num_steps = kNumSteps};
  const Report report = RunSeeds(options);
  std::printf("%sdecisions %016llx\n", Describe(report.tally).c_str(),
              static_cast<unsigned long long>(report.decisions));
  ASSERT_FALSE(report.has_failed) << "seed " << report.failed_seed << ", "
                                  << ShrinkSeed(report.failed_seed);
  EXPECT_GE(report.tally[Seen::kSteps], options.num_steps);
  EXPECT_EQ(MissedFloors(report.tally), "");
}

// Those on which the scheduler, or the auditor, was once wrong (docs/guarantees.md): too rare to be
// met again by the steps above.
TEST(Simulation, SeedsThatOnceFailedPass) {
  for (const std::uint64_t seed : {11943, 24343, 90564, 126380, 535447, 1213612}) {
    EXPECT_EQ(FailureOf(MakeScenario(Chance(seed))), "") << "seed " << seed;
  }
}

TEST(Simulation, ASeedPlayedTwiceMakesTheSameDecisions) {
  std::vector<std::uint64_t> decisions;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Scenario first = MakeScenario(Chance(seed));
    const Scenario second = MakeScenario(Chance(seed));
    decisions.push_back(Simulation(first).Run().decisions);
    EXPECT_EQ(Simulation(second).Run().decisions, decisions.back()) << "seed " << seed;
  }
  std::ranges::sort(decisions);
  EXPECT_EQ(std::ranges::adjacent_find(decisions), decisions.end());
}

TEST(Simulation, LeavingOutWhatDoesNotHappenChangesNoDecision) {
  Scenario scenario = MakeScenario(Chance(3));
  const std::uint64_t decisions = Simulation(scenario).Run().decisions;
  scenario.requests.push_back(scenario.requests.back());
  const auto place = static_cast<std::uint32_t>(scenario.requests.size() - 1);
  EXPECT_EQ(Simulation(scenario.Without({place}, {})).Run().decisions, decisions);
}

TEST(Chance, BytesDecideUntilTheyAreSpent) {
  const std::vector<std::uint8_t> bytes = {7, 1, 2};
  Chance chance(bytes);
  EXPECT_EQ(chance.Roll(10), 7);
  EXPECT_EQ(chance.Roll(1'000), 256 + 2);
  Chance again(bytes);
  again.Roll(10);
  again.Roll(1'000);
  EXPECT_EQ(chance.Roll(1 << 20), again.Roll(1 << 20));
}

// Fails when two certain requests and one certain event are there: what a shrinker has to find.
TEST(Shrinker, FindsTheSmallestRestThatStillFails) {
  const Scenario scenario = MakeScenario(Chance(1));
  ASSERT_GE(scenario.requests.size(), 5u);
  ASSERT_GE(scenario.events.size(), 2u);
  const Event kept = scenario.events[1];
  const auto fails = [&](const Scenario& rest) {
    const bool has_requests = rest.left_out.empty() || (!rest.left_out[0] && !rest.left_out[4]);
    const bool has_event = std::ranges::any_of(rest.events, [&](const Event& event) {
      return event.at == kept.at && event.kind == kept.kind && event.subject == kept.subject;
    });
    return has_requests && has_event;
  };
  const Omission omission = Shrink(scenario, fails);
  const Scenario rest = scenario.Without(omission.requests, omission.events);
  EXPECT_TRUE(fails(rest));
  EXPECT_LE(std::ranges::count(rest.left_out, false), 3);
  EXPECT_EQ(rest.events.size(), 1u);
  const auto parsed = Omission::FromText(omission.ToText());
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->ToText(), omission.ToText());
}

TEST(Shrinker, RefusesAListThatIsNone) {
  for (const char* text : {"x1", "r", "r1x", "1", "e1,,r2"}) {
    EXPECT_FALSE(Omission::FromText(text).has_value()) << text;
  }
}

TEST(ChildProcess, TellsHowItsWorkEndedAndWhatItSaid) {
  EXPECT_EQ(RunInChild([] {}, {}).end, ChildEnd::kPassed);
  const ChildReport report = RunInChild([] { PAGODA_CHECK(1 + 1 == 3); }, {.is_quiet = true});
  EXPECT_EQ(report.end, ChildEnd::kAborted);
  EXPECT_NE(report.said.find("check failed: 1 + 1 == 3"), std::string::npos) << report.said;
}

TEST(Tally, NamesWhatWasMetTooSeldom) {
  Tally tally;
  tally[Seen::kSteps] = 1'000'000;
  const std::string missed = MissedFloors(tally);
  EXPECT_NE(missed.find("preemptions: 0, at least"), std::string::npos) << missed;
}

}  // namespace
}  // namespace pagoda::simulation
