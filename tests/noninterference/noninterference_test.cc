// What other tenants can make a tenant see: the same server life is run twice, with the others and
// without, and what tenant B sees is compared (scheduler/README.md, "What is promised").
//   noninterference_test [--pairs=N] [--seed=S] [--jobs=N]
// A fault names the promise, the fence delay and the seed; --pairs=1 --seed=S repeats it. A run in
// which the others did not disturb enough, or in which a B that may borrow could not be told from
// an isolated one, proves nothing and fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tests/noninterference/scenes.h"
#include "tests/simulation/child_process.h"

namespace pagoda::scheduler::testing {
namespace {

std::uint64_t num_pairs = 300;
std::uint64_t first_seed = 1;
std::uint64_t num_jobs = 1;  // processes; each takes every num_jobs-th pair
constexpr int kSecondsOfJob = 14'400;
// Fewer are a replay, and need not meet everything.
constexpr std::uint64_t kEnoughPairs = 50;

struct Case {
  const char* promise = "";
  int fence_delay = 0;
  std::uint64_t seed = 0;
};
Case current;

void NameTheCase() {
  std::fprintf(stderr, "%s, fence delay %d: failed with --pairs=1 --seed=%llu\n", current.promise,
               current.fence_delay, static_cast<unsigned long long>(current.seed));
}

struct Tally {
  std::int64_t pairs = 0, steps = 0, disturbed = 0, differing = 0, hits = 0, requests = 0,
               compared = 0;

  void Add(const Tally& other) {
    pairs += other.pairs;
    steps += other.steps;
    disturbed += other.disturbed;
    differing += other.differing;
    hits += other.hits;
    requests += other.requests;
    compared += other.compared;
  }
  void Add(const Observation& alone, const Observation& beside) {
    ++pairs;
    steps += alone.steps + beside.steps;
    disturbed += beside.preemptions + beside.evictions_between_tenants >
                 alone.preemptions + alone.evictions_between_tenants;
    hits += alone.hits;
    requests += static_cast<std::int64_t>(alone.outcomes.size());
  }
  void Print(const char* what) const {
    std::printf(
        "%s, fence delay %d: pairs %ld, steps %ld, requests of B %ld, blocks hit %ld, disturbed "
        "%.1f %%, differing %ld (%.2f %%)\n",
        what, current.fence_delay, pairs, steps, requests, hits,
        100.0 * static_cast<double>(disturbed) / static_cast<double>(pairs), differing,
        100.0 * static_cast<double>(differing) / static_cast<double>(pairs));
  }
  void ExpectNotVoid() const {
    if (num_pairs < kEnoughPairs) return;
    EXPECT_GE(disturbed * 2, pairs) << "void: the others did not disturb enough";
    EXPECT_GT(hits, 0) << "void: B had no hits of its own";
  }
};

// The pairs of one promise at one fence delay.
struct Round {
  const char* name = "";
  Promise promise = Promise::kIsolated;
  std::uint64_t count = 0;
  int fence_delay = 0;
};

// Calls check(scene, tally) for a job's pairs, until one fails.
template <typename Check>
void PlayJob(const Round& round, std::uint64_t job, Tally& tally, Check check) {
  for (std::uint64_t i = job; i < round.count; i += num_jobs) {
    current = {round.name, round.fence_delay, first_seed + i};
    check(MakeScene(round.promise, current.seed, round.fence_delay), tally);
    if (::testing::Test::HasFailure()) return NameTheCase();
  }
}

// Every job in a process of its own, which says what failed.
template <typename Check>
Tally PlayInChildren(const Round& round, Check check) {
  std::vector<Tally*> tallies;
  std::vector<simulation::ChildProcess> children;
  for (std::uint64_t job = 0; job < num_jobs; ++job) {
    tallies.push_back(&simulation::MakeShared<Tally>());
    children.push_back(simulation::ChildProcess::Start(
        [&, job] {
          PlayJob(round, job, *tallies[job], check);
          PAGODA_CHECK_MSG(!::testing::Test::HasFailure(), "the pair named above differs");
        },
        {.seconds = kSecondsOfJob}));
  }
  Tally tally;
  for (std::uint64_t job = 0; job < num_jobs; ++job) {
    EXPECT_EQ(children[job].Wait(), simulation::ChildEnd::kPassed);
    tally.Add(*tallies[job]);
  }
  return tally;
}

// Calls check(scene, tally) for every pair, at every fence delay, and report(tally) after each.
template <typename Check, typename Report>
void ForEachPair(const char* name, Promise promise, std::uint64_t count, Check check,
                 Report report) {
  base::SetFaultHook(&NameTheCase);
  for (int fence_delay = 0; fence_delay <= 2; ++fence_delay) {
    const Round round = {name, promise, count, fence_delay};
    current.fence_delay = fence_delay;
    Tally tally;
    if (num_jobs > 1) {
      tally = PlayInChildren(round, check);
    } else {
      PlayJob(round, 0, tally, check);
    }
    if (::testing::Test::HasFailure()) return;
    EXPECT_EQ(tally.pairs, static_cast<std::int64_t>(count));
    report(tally);
    std::fflush(stdout);
  }
  base::SetFaultHook(nullptr);
}

std::string Describe(const Sight& sight) {
  static constexpr const char* kNames[] = {"gate",  "match", "work",      "copy",     "evicted",
                                           "token", "score", "preempted", "finished", "receipt"};
  std::string text = std::string(kNames[static_cast<std::size_t>(sight.kind)]) + " at step " +
                     std::to_string(sight.step) + " of request " + std::to_string(sight.request) +
                     ":";
  for (const std::int64_t value : sight.values) text += " " + std::to_string(value);
  return text;
}

void ExpectSameTranscript(const Observation& alone, const Observation& beside) {
  const std::size_t both = std::min(alone.transcript.size(), beside.transcript.size());
  for (std::size_t i = 0; i < both; ++i) {
    ASSERT_EQ(alone.transcript[i], beside.transcript[i])
        << "alone:  " << Describe(alone.transcript[i])
        << "\nbeside: " << Describe(beside.transcript[i]);
  }
  ASSERT_EQ(alone.transcript.size(), beside.transcript.size());
}

bool IsWhole(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength;
}

void ExpectSameAnswer(const AskOutcome& a, const AskOutcome& b) {
  ASSERT_EQ(a.replies.size(), b.replies.size());
  for (std::size_t c = 0; c < a.replies.size(); ++c) {
    const auto &of_a = a.replies[c], &of_b = b.replies[c];
    const auto both = static_cast<std::ptrdiff_t>(std::min(of_a.size(), of_b.size()));
    EXPECT_TRUE(std::equal(of_a.begin(), of_a.begin() + both, of_b.begin()));
    if (IsWhole(a.finishes[c])) {
      EXPECT_LE(of_b.size(), of_a.size());
    }
    if (IsWhole(b.finishes[c])) {
      EXPECT_LE(of_a.size(), of_b.size());
    }
    if (IsWhole(a.finishes[c]) && IsWhole(b.finishes[c])) {
      EXPECT_EQ(a.finishes[c], b.finishes[c]);
    }
  }
  for (std::size_t s = 0; s < std::min(a.scores.size(), b.scores.size()); ++s) {
    EXPECT_EQ(a.scores[s].rank, b.scores[s].rank);
    EXPECT_EQ(a.scores[s].of.token, b.scores[s].of.token);
    EXPECT_EQ(a.scores[s].of.logprob, b.scores[s].of.logprob);
  }
}

TEST(NonInterference, NI1AnIsolatedTenantSeesNothingOfTheOthers) {
  ForEachPair(
      "NI-1", Promise::kIsolated, num_pairs,
      [](const Scene& scene, Tally& tally) {
        const Observation alone = JointRun(scene.options, scene.of_b).Run();
        const Observation beside = JointRun(scene.options, scene.all()).Run();
        tally.Add(alone, beside);
        ExpectSameTranscript(alone, beside);
      },
      [](const Tally& tally) {
        tally.Print("NI-1");
        tally.ExpectNotVoid();
      });
}

// The comparison can tell: a B that may borrow sees the others.
TEST(NonInterference, NI1TellsABThatMayBorrowFromAnIsolatedOne) {
  if (num_pairs < kEnoughPairs) return;
  ForEachPair(
      "NI-1, B may borrow", Promise::kIsolated, num_pairs < 2'000 ? num_pairs : num_pairs / 20,
      [](Scene scene, Tally& tally) {
        scene.options.config.tenants[kObserved].isolated = false;
        const Observation alone = JointRun(scene.options, scene.of_b).Run();
        const Observation beside = JointRun(scene.options, scene.all()).Run();
        tally.Add(alone, beside);
        tally.differing += alone.transcript != beside.transcript;
      },
      [](const Tally& tally) {
        tally.Print("NI-1, B may borrow");
        EXPECT_GE(tally.differing * 5, tally.pairs) << "void: the comparison tells nothing";
      });
}

TEST(NonInterference, NI2EveryAnswerIsTheSameAndOneCutShortIsABeginningOfIt) {
  ForEachPair(
      "NI-2", Promise::kSameAnswers, num_pairs,
      [](const Scene& scene, Tally& tally) {
        const Observation alone = JointRun(scene.options, scene.of_b).Run();
        const Observation beside = JointRun(scene.options, scene.all()).Run();
        tally.Add(alone, beside);
        for (std::size_t i = 0; i < alone.outcomes.size(); ++i) {
          // A refusal at the gate is promised to nobody but an isolated tenant.
          if (alone.outcomes[i].refused || beside.outcomes[i].refused) continue;
          ++tally.compared;
          ExpectSameAnswer(alone.outcomes[i], beside.outcomes[i]);
        }
      },
      [](const Tally& tally) {
        tally.Print("NI-2");
        tally.ExpectNotVoid();
        EXPECT_GT(tally.compared * 2, tally.requests);
      });
}

TEST(NonInterference, NI3OneRequestAtATimeWithinTheReserveLosesNoHit) {
  ForEachPair(
      "NI-3", Promise::kSerialInReserve, num_pairs,
      [](const Scene& scene, Tally& tally) {
        const Observation alone = JointRun(scene.options, scene.of_b).Run();
        const Observation beside = JointRun(scene.options, scene.all()).Run();
        tally.Add(alone, beside);
        for (std::size_t i = 0; i < alone.outcomes.size(); ++i) {
          const AskOutcome &a = alone.outcomes[i], &b = beside.outcomes[i];
          EXPECT_EQ(a.hits, b.hits);
          EXPECT_EQ(a.copied, b.copied);
          EXPECT_EQ(a.finish, b.finish);
          EXPECT_EQ(a.replies, b.replies);
          EXPECT_EQ(a.receipt.cached_tokens, b.receipt.cached_tokens);
          EXPECT_EQ(a.receipt.blocks_touched, b.receipt.blocks_touched);
          EXPECT_EQ(a.receipt.blocks_peak, b.receipt.blocks_peak);
          EXPECT_EQ(a.receipt.preemptions, 0);
          EXPECT_EQ(b.receipt.preemptions, 0);
        }
      },
      [](const Tally& tally) {
        tally.Print("NI-3");
        tally.ExpectNotVoid();
      });
}

TEST(NonInterference, NI4HitsLieBetweenThoseOfAPoolOfItsOwnAndThoseAlone) {
  ForEachPair(
      "NI-4", Promise::kSerial, num_pairs,
      [](const Scene& scene, Tally& tally) {
        JointRunOptions own_pool = scene.options;
        own_pool.config.tenants[kObserved].isolated = true;
        const Observation least = JointRun(own_pool, scene.of_b).Run();
        const Observation beside = JointRun(scene.options, scene.all()).Run();
        const Observation alone = JointRun(scene.options, scene.of_b).Run();
        tally.Add(alone, beside);
        bool differs = false;
        for (std::size_t i = 0; i < alone.outcomes.size(); ++i) {
          EXPECT_LE(least.outcomes[i].hits, beside.outcomes[i].hits);
          EXPECT_LE(beside.outcomes[i].hits, alone.outcomes[i].hits);
          differs |= least.outcomes[i].hits != alone.outcomes[i].hits;
        }
        tally.differing += differs;
      },
      [](const Tally& tally) {
        tally.Print("NI-4");
        tally.ExpectNotVoid();
      });
}

}  // namespace
}  // namespace pagoda::scheduler::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // "--pairs=N" and "--pairs N" alike.
  const auto value_of = [&](int i, std::string_view flag) -> const char* {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(flag)) return nullptr;
    if (argument.size() == flag.size()) return i + 1 < argc ? argv[i + 1] : nullptr;
    return argument[flag.size()] == '=' ? argv[i] + flag.size() + 1 : nullptr;
  };
  for (int i = 1; i < argc; ++i) {
    using pagoda::scheduler::testing::first_seed;
    using pagoda::scheduler::testing::num_jobs;
    using pagoda::scheduler::testing::num_pairs;
    if (const char* value = value_of(i, "--seed")) first_seed = std::strtoull(value, nullptr, 10);
    if (const char* value = value_of(i, "--pairs")) num_pairs = std::strtoull(value, nullptr, 10);
    if (const char* value = value_of(i, "--jobs")) {
      num_jobs = std::max(1ull, std::strtoull(value, nullptr, 10));
    }
  }
  return RUN_ALL_TESTS();
}
