#include "engine/journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace pagoda::engine {
namespace {

// Opens a segment whose snapshot is so many bytes of a mark.
bool Open(Journal& journal, std::size_t snapshot_bytes, std::uint8_t mark) {
  const auto room = journal.BeginSegment();
  if (room.empty()) return false;
  std::ranges::fill(room.first(snapshot_bytes), mark);
  journal.OpenSegment(snapshot_bytes, mark);
  return true;
}
void Add(Journal& journal, std::size_t num_bytes, std::uint8_t mark) {
  std::ranges::fill(journal.record_room().first(num_bytes), mark);
  journal.AddRecord(num_bytes);
}

TEST(Journal, KeepsTheLastTwoSegmentsInOrder) {
  Journal journal(300);
  EXPECT_TRUE(journal.wants_segment());
  EXPECT_FALSE(journal.is_recording());
  for (std::uint8_t mark = 1; mark <= 5; ++mark) {
    ASSERT_TRUE(Open(journal, 10, mark));
    EXPECT_TRUE(journal.is_recording());
    Add(journal, 5, static_cast<std::uint8_t>(mark + 100));
  }
  const Journal::Pin pin(journal);
  ASSERT_EQ(pin.segments().size(), 2u);
  for (std::uint8_t i = 0; i < 2; ++i) {
    const JournalSegment& segment = pin.segments()[i];
    EXPECT_EQ(segment.number, 4u + i);
    EXPECT_EQ(segment.opening_digest, 4u + i);
    EXPECT_TRUE(segment.follows_on);
    EXPECT_EQ(std::ranges::count(segment.snapshot, 4 + i), 10);
    EXPECT_EQ(std::ranges::count(segment.records, 104 + i), 5);
  }
}

TEST(Journal, WantsANewSegmentBeforeTheOldOneIsFull) {
  Journal journal(300);
  Open(journal, 10, 1);
  Add(journal, 70, 1);
  EXPECT_FALSE(journal.wants_segment());
  Add(journal, 10, 1);
  EXPECT_TRUE(journal.wants_segment());
  EXPECT_EQ(journal.record_room().size(), 10u);
}

TEST(Journal, WhatIsReadStaysAndTheWriterLeavesOutRatherThanWait) {
  Journal journal(300);
  Open(journal, 10, 1);
  Open(journal, 10, 2);
  {
    const Journal::Pin pin(journal);
    ASSERT_TRUE(Open(journal, 10, 3));
    EXPECT_FALSE(Open(journal, 10, 4));  // two are read, the third is written
    Add(journal, 5, 3);
    EXPECT_EQ(std::ranges::count(pin.segments()[0].snapshot, 1), 10);
    EXPECT_EQ(std::ranges::count(pin.segments()[1].snapshot, 2), 10);
  }
  EXPECT_TRUE(Open(journal, 10, 5));
}

TEST(Journal, ACutOneSaysThatTheNextDoesNotFollowOnIt) {
  Journal journal(300);
  Open(journal, 10, 1);
  journal.Cut();
  EXPECT_FALSE(journal.is_recording());
  EXPECT_TRUE(journal.wants_segment());
  Open(journal, 10, 2);
  const Journal::Pin pin(journal);
  EXPECT_FALSE(pin.segments()[1].follows_on);
}

// Too large, or so large that the next one would be due at once.
TEST(Journal, ASnapshotThatDoesNotFitOpensNothingAndIsNotTriedAgainAtOnce) {
  Journal journal(300);
  for (const std::size_t size : {0, 76}) {
    Open(journal, size, 1);
    EXPECT_FALSE(journal.is_recording());
    EXPECT_TRUE(journal.snapshot_did_not_fit());
    EXPECT_FALSE(journal.wants_segment());
    int num_asked = 1;
    while (!journal.wants_segment()) ++num_asked;
    EXPECT_GT(num_asked, 1000);
  }
  EXPECT_TRUE(Journal::Pin(journal).segments().empty());
  Open(journal, 10, 1);
  EXPECT_TRUE(journal.is_recording());
  EXPECT_FALSE(journal.snapshot_did_not_fit());
}

// Under the thread sanitizer: a reader beside the writer sees whole records alone.
TEST(Journal, AReaderBesideTheWriterSeesWholeRecords) {
  Journal journal(3 * 4096);
  std::thread writer([&journal] {
    for (int i = 0; i < 20'000; ++i) {
      if (journal.wants_segment()) Open(journal, 64, 7);
      if (!journal.is_recording()) continue;
      if (journal.record_room().size() < 8) {
        journal.Cut();
      } else {
        Add(journal, 8, static_cast<std::uint8_t>(i));
      }
    }
  });
  for (int i = 0; i < 200; ++i) {
    const Journal::Pin pin(journal);
    for (const JournalSegment& segment : pin.segments()) {
      EXPECT_EQ(std::ranges::count(segment.snapshot, 7), 64);
      ASSERT_EQ(segment.records.size() % 8, 0u);
      for (std::size_t at = 0; at < segment.records.size(); at += 8) {
        const auto record = segment.records.subspan(at, 8);
        EXPECT_EQ(std::ranges::count(record, record.front()), 8);
      }
    }
  }
  writer.join();
}

}  // namespace
}  // namespace pagoda::engine
