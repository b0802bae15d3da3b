#include <gtest/gtest.h>

#include "engine/journal_file.h"
#include "engine/journal_replay.h"
#include "tests/engine/engine_world.h"

namespace pagoda::engine {
namespace {

// The loop's own calls, in its own order: submissions, a pause, a cancel, a flush.
TEST(RecordedEngine, WhatALoopTellsItsSchedulerCanBePlayedAgain) {
  const WorldConfig config{.pool_blocks = 40};
  const auto scheduler = MakeScheduler(config);
  const auto executor = MakeDigest(config);
  fakes::RecordingSink sink;
  const fakes::ManualClock clock;
  Journal journal(3 * 1'000'000);
  EngineLoop loop({.mailbox_capacity = kMailboxCapacity, .eos_tokens = {kEos}, .journal = &journal},
                  *scheduler, *executor, sink, clock);
  for (const Ask& ask : MakeAsks(40, 11)) {
    loop.Handle({.kind = Message::Kind::kSubmit, .request = MakeRequest(ask, config)});
  }
  loop.Handle({.kind = Message::Kind::kSetPaused, .id = base::RequestId(3), .paused = true});
  for (int i = 0; i < 10; ++i) loop.RunTurn();
  loop.Handle({.kind = Message::Kind::kCancel, .id = base::RequestId(3)});
  loop.Handle({.kind = Message::Kind::kFlushPrefixCache, .ticket = 1});
  while (loop.RunTurn() == EngineLoop::Turn::kWorked) {
  }
  const auto dump = DumpJournal(journal, base::Digest256{1});
  ASSERT_TRUE(dump.ok()) << dump.status();
  const auto stored = DecodeJournal(*dump);
  ASSERT_TRUE(stored.ok()) << stored.status();
  std::vector<JournalSegment> segments;
  for (const StoredSegment& segment : *stored) segments.push_back(segment.view());
  const auto report = ReplaySegments(segments);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->num_decisions, 40);
}

}  // namespace
}  // namespace pagoda::engine
