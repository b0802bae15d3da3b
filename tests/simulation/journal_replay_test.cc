#include "engine/journal_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/journal_disguise.h"
#include "engine/journal_file.h"
#include "scheduler/mutants.h"
#include "tests/simulation/child_process.h"
#include "tests/simulation/mutants.h"
#include "tests/simulation/simulation.h"

namespace pagoda::simulation {
namespace {

using engine::Journal;
using engine::JournalRecord;
using engine::JournalSegment;
using engine::RecordKind;
using engine::StoredSegment;
using testing::HasSubstr;

constexpr base::Digest256 kSecret = {7, 1, 7};
constexpr std::size_t kLargeJournal = 3 * 4'000'000;

// Hardly more than a snapshot for each segment, so that a life goes through many.
std::size_t SmallJournalFor(const Scenario& scenario) {
  const auto blocks = static_cast<std::size_t>(scenario.pool_blocks());
  return 3 * (blocks * 200 + 12'000);
}

std::vector<JournalSegment> ViewsOf(const std::vector<StoredSegment>& stored) {
  std::vector<JournalSegment> views;
  for (const StoredSegment& segment : stored) views.push_back(segment.view());
  return views;
}

// One life, and what its journal is as a file.
struct Recorded {
  explicit Recorded(std::uint64_t seed, bool is_small = false)
      : scenario(MakeScenario(Chance(seed))),
        journal(is_small ? SmallJournalFor(scenario) : kLargeJournal) {
    Simulation simulation(scenario);
    simulation.RecordInto(journal);
    tally = simulation.Run().tally;
    decisions = simulation.recorded_decisions();
  }
  std::vector<std::uint8_t> Dump() {
    auto bytes = engine::DumpJournal(journal, kSecret);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return *std::move(bytes);
  }

  const Scenario scenario;
  Journal journal;
  Tally tally;
  std::uint64_t decisions = 0;
};

struct Totals {
  std::int64_t segments = 0, later_openings = 0, inputs = 0, decisions = 0;
  int lives_to_the_end = 0;  // others had no room for a snapshot
};

void ExpectEqualReplay(std::uint64_t seed, bool is_small, Totals& totals) {
  Recorded life(seed, is_small);
  const bool is_whole = life.journal.is_recording();
  totals.lives_to_the_end += is_whole;
  if (Journal::Pin(life.journal).segments().empty()) return;
  {
    const Journal::Pin pin(life.journal);
    const auto raw = engine::ReplaySegments(pin.segments());
    ASSERT_TRUE(raw.ok()) << "seed " << seed << ": " << raw.status();
    if (is_whole) {
      EXPECT_EQ(raw->decisions, life.decisions) << "seed " << seed;
    }
  }
  const auto stored = engine::DecodeJournal(life.Dump());
  ASSERT_TRUE(stored.ok()) << stored.status();
  const auto report = engine::ReplaySegments(ViewsOf(*stored));
  ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.status();
  if (is_whole) {
    EXPECT_EQ(report->decisions, life.decisions) << "seed " << seed;
  }
  totals.segments += report->num_segments;
  for (const StoredSegment& segment : *stored) totals.later_openings += segment.number > 1;
  totals.inputs += report->num_inputs;
  totals.decisions += report->num_decisions;
}

TEST(JournalReplay, EveryLifeMakesTheSameDecisionsAgainWithoutItsTokens) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ExpectEqualReplay(seed, false, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(totals.lives_to_the_end, 300);
  std::printf("300 lives: %lld segments, %lld inputs, %lld decisions\n",
              static_cast<long long>(totals.segments), static_cast<long long>(totals.inputs),
              static_cast<long long>(totals.decisions));
}

TEST(JournalReplay, ALifeGoesOnFromASnapshotOfItsMiddle) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ExpectEqualReplay(seed, true, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(totals.later_openings, 100);
  EXPECT_GE(totals.lives_to_the_end, 250);
  std::printf(
      "%d lives to their ends: %lld segments, %lld of them opened in the middle, %lld decisions\n",
      totals.lives_to_the_end, static_cast<long long>(totals.segments),
      static_cast<long long>(totals.later_openings), static_cast<long long>(totals.decisions));
}

// The lives above are worth their number only if they are lives.
TEST(JournalReplay, TheLivesHaveWhatASchedulerCanMeet) {
  Tally all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) all.Add(Recorded(seed).tally);
  for (const Seen seen :
       {Seen::kPreemptions, Seen::kCancelled, Seen::kSubmitFailures, Seen::kAwaitFailures,
        Seen::kFlushes, Seen::kReconfigurations, Seen::kPauses, Seen::kNonFinite, Seen::kAdoptions,
        Seen::kCopies, Seen::kForkCopies, Seen::kStaleSamples, Seen::kPromptScores, Seen::kLaneHits,
        Seen::kLaneCopies, Seen::kAgedBlocks}) {
    EXPECT_GT(all[seen], 0) << static_cast<int>(seen);
  }
}

struct Place {
  std::size_t begin = 0, size = 0;
};
// Of the first record of this kind; of no size when there is none.
Place PlaceOf(RecordKind kind, const JournalSegment& segment, std::int32_t block_size) {
  for (std::size_t position = 0; position < segment.records.size();) {
    scheduler::SnapshotArchive archive(segment.records.subspan(position));
    JournalRecord record;
    VisitRecord(archive, record, block_size);
    EXPECT_TRUE(archive.ok());
    if (record.kind == kind) return {position, archive.position()};
    position += archive.position();
  }
  return {};
}

// Whether it says so; a process of its own, as a broken invariant may say it.
bool Differs(const std::vector<StoredSegment>& stored) {
  const ChildReport report = RunInChild(
      [&] { _exit(engine::ReplaySegments(ViewsOf(stored)).ok() ? 0 : 1); }, {.is_quiet = true});
  return report.end != ChildEnd::kPassed;
}

// Left out: a submission, without which nothing can be as it was, and a cancel, which may have been
// one of a request that had ended.
TEST(JournalReplay, AnInputThatIsLeftOutChangesTheDecisions) {
  int num_submissions = 0, num_cancels = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Recorded life(seed);
    const auto stored = engine::DecodeJournal(life.Dump());
    ASSERT_TRUE(stored.ok());
    EXPECT_FALSE(Differs(*stored));
    for (const RecordKind kind : {RecordKind::kAdd, RecordKind::kCancel}) {
      std::vector<StoredSegment> changed = *stored;
      const Place place = PlaceOf(kind, changed[0].view(), life.scenario.config.block_size);
      std::vector<std::uint8_t>& records = changed[0].records;
      const auto begin = records.begin() + static_cast<std::ptrdiff_t>(place.begin);
      records.erase(begin, begin + static_cast<std::ptrdiff_t>(place.size));
      (kind == RecordKind::kAdd ? num_submissions : num_cancels) += Differs(changed);
    }
  }
  EXPECT_GE(num_submissions, 28);
  EXPECT_GE(num_cancels, 5);
}

TEST(JournalReplay, AFaultInTheSchedulerMakesOtherDecisions) {
  for (const std::string_view name : {"EvictsNewest", "WaitsForNoKey", "DecodesUncharged",
                                      "MostWorkLost", "CopiesATokenMore", "HandOutNotZeroed"}) {
    const auto mutant = FindMutant(name);
    ASSERT_TRUE(mutant.has_value()) << name;
    int num_seen = 0;
    for (std::uint64_t seed = 1; seed <= 400 && num_seen == 0; ++seed) {
      Recorded life(seed);
      const auto stored = engine::DecodeJournal(life.Dump());
      const ChildReport report = RunInChild(
          [&] {
            scheduler::active_mutant = mutant->mutant;
            _exit(engine::ReplaySegments(ViewsOf(*stored)).ok() ? 0 : 1);
          },
          {.is_quiet = true});
      num_seen += report.end != ChildEnd::kPassed;
    }
    EXPECT_GT(num_seen, 0) << name;
  }
}

bool Contains(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> part) {
  return std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
}

TEST(JournalFile, HoldsNoTokensThoughTheMemoryDoes) {
  Recorded life(5);
  const std::vector<std::uint8_t> file = life.Dump();
  const Journal::Pin pin(life.journal);
  int num_in_memory = 0;
  for (const RequestScript& script : life.scenario.requests) {
    if (script.prompt.size() < 4) continue;
    const std::span tokens(reinterpret_cast<const std::uint8_t*>(script.prompt.data()),
                           4 * sizeof(base::TokenId));
    num_in_memory += Contains(pin.segments().back().records, tokens);
    EXPECT_FALSE(Contains(file, tokens));
  }
  EXPECT_GT(num_in_memory, 0);
}

TEST(JournalFile, UnderAnotherSecretTheSameLifeLooksAnother) {
  Recorded life(5);
  const auto one = engine::DumpJournal(life.journal, kSecret);
  const auto same = engine::DumpJournal(life.journal, kSecret);
  const auto other = engine::DumpJournal(life.journal, base::Digest256{8});
  EXPECT_EQ(*one, *same);
  EXPECT_NE(*one, *other);
  EXPECT_EQ(one->size(), other->size());
}

TEST(JournalFile, CutOrDamagedItIsRefusedWithAReason) {
  Recorded life(2, true);
  const std::vector<std::uint8_t> file = life.Dump();
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{7}, std::size_t{20}, file.size() / 2, file.size() - 1}) {
    const auto cut = engine::DecodeJournal(std::span(file).first(length));
    EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(cut.status().message(), HasSubstr(length < 8 ? "no journal" : "cut short"));
  }
  std::vector<std::uint8_t> longer = file;
  longer.push_back(0);
  EXPECT_THAT(engine::DecodeJournal(longer).status().message(), HasSubstr("too long"));
  for (std::size_t i = 16; i < file.size(); i += 1 + file.size() / 50) {
    std::vector<std::uint8_t> damaged = file;
    damaged[i] ^= 0x10;
    EXPECT_THAT(engine::DecodeJournal(damaged).status().message(), HasSubstr("damaged")) << i;
  }
}

TEST(JournalFile, NothingThatFitsIsSaidWhenASegmentIsTooSmall) {
  Journal journal(3 * 64);
  const Scenario scenario = MakeScenario(Chance(1));
  Simulation simulation(scenario);
  simulation.RecordInto(journal);
  simulation.Run();
  const auto dump = engine::DumpJournal(journal, kSecret);
  EXPECT_EQ(dump.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(dump.status().message(), HasSubstr("64 bytes of a segment"));
}

}  // namespace
}  // namespace pagoda::simulation
