#include "server/journal_dumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/journal_file.h"
#include "engine/journal_replay.h"
#include "engine/recorded_scheduler.h"
#include "scheduler/scheduler.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

// A scheduler that has been asked a few times, and a folder.
class JournalDumpsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "-dumps"));
    std::filesystem::create_directories(folder_);
    scheduler::SchedulerConfig config;
    config.pool_blocks_per_group = {20};
    config.max_model_len = 64;
    scheduler_ = *scheduler::Scheduler::Create(config);
    engine::RecordedScheduler recorded(*scheduler_, &journal_);
    for (int i = 1; i <= 3; ++i) recorded.TryPlan(base::Instant::FromNanos(i));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static absl::StatusOr<engine::ReplayReport> Replay(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(stream),
                                          std::istreambuf_iterator<char>()};
    const auto stored = engine::DecodeJournal(bytes);
    if (!stored.ok()) return stored.status();
    std::vector<engine::JournalSegment> segments;
    for (const engine::StoredSegment& segment : *stored) segments.push_back(segment.view());
    return engine::ReplaySegments(segments);
  }

  std::filesystem::path folder_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  engine::Journal journal_{3 * 1'000'000};
};

TEST_F(JournalDumpsTest, AFileIsWrittenWholeAndCanBePlayedAgain) {
  JournalDumps dumps(journal_, folder_.string());
  const auto report = dumps.Write("asked");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->path, HasSubstr("-1-asked.pagoda"));
  EXPECT_EQ(static_cast<std::int64_t>(std::filesystem::file_size(report->path)), report->bytes);
  const auto replay = Replay(report->path);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->num_inputs, 3);
}

TEST_F(JournalDumpsTest, AFolderThatIsGoneIsNamed) {
  JournalDumps dumps(journal_, (folder_ / "gone").string());
  EXPECT_THAT(dumps.Write("asked").status().message(), HasSubstr("--journal-dir"));
}

TEST_F(JournalDumpsTest, FailedStepsAreWrittenAFewTimes) {
  JournalDumps dumps(journal_, folder_.string());
  for (int i = 0; i < 10; ++i) dumps.WriteForFailedSteps();
  int num_files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    num_files += Replay(file.path().string()).ok();
  }
  EXPECT_EQ(num_files, 4);
}

TEST_F(JournalDumpsTest, ABrokenInvariantWritesOneBeforeItEndsTheProcess) {
  EXPECT_DEATH(
      {
        JournalDumps dumps(journal_, folder_.string());
        dumps.WriteForBrokenInvariants();
        PAGODA_CHECK(folder_.empty());
      },
      "journal written to .*-broken.pagoda");
  int num_files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    num_files += Replay(file.path().string()).ok();
  }
  EXPECT_EQ(num_files, 1);
}

}  // namespace
}  // namespace pagoda::server
