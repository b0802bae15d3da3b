#include "server/config/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pagoda::server {
namespace {

using testing::HasSubstr;

// A made-up /proc and /sys.
class MachineMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MachineMemoryTest, IsWhatTheMachineHasWithoutAControlGroup) {
  Write("/proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    2000 kB\n");
  EXPECT_EQ(*AvailableMemory(root_), 2000 * 1024);
}

TEST_F(MachineMemoryTest, IsCutToTheTightestControlGroup) {
  Write("/proc/meminfo", "MemAvailable: 2000 kB\n");
  Write("/proc/self/cgroup", "0::/slice/pod\n");
  Write("/sys/fs/cgroup/slice/memory.max", "500000\n");
  Write("/sys/fs/cgroup/slice/memory.current", "100000\n");
  Write("/sys/fs/cgroup/slice/pod/memory.max", "max\n");
  Write("/sys/fs/cgroup/slice/pod/memory.current", "1000\n");
  EXPECT_EQ(*AvailableMemory(root_), 400000);
}

TEST_F(MachineMemoryTest, SaysWhatToDoWhenItCannotBeRead) {
  EXPECT_THAT(std::string(AvailableMemory(root_).status().message()),
              HasSubstr("--kv-cache-memory"));
}

KvMemoryQuestion Question() {
  return {.asked_bytes = std::nullopt,
          .available_bytes = 100'000,
          .bytes_per_block = 100,
          .blocks_per_full_request = 10,
          .max_num_seqs = 1000};
}

TEST(ChooseKvMemory, AutoTakesItsShare) { EXPECT_EQ(ChooseKvMemory(Question())->num_blocks, 500); }

TEST(ChooseKvMemory, AutoTakesNoMoreThanAllSequencesCanUse) {
  KvMemoryQuestion question = Question();
  question.max_num_seqs = 3;
  EXPECT_EQ(ChooseKvMemory(question)->num_blocks, 31);
}

TEST(ChooseKvMemory, AGivenSizeIsTakenExactly) {
  KvMemoryQuestion question = Question();
  question.asked_bytes = 1999;
  EXPECT_EQ(ChooseKvMemory(question)->num_blocks, 19);
}

// I1: too little memory gives all the numbers.
TEST(ChooseKvMemory, TooLittleNamesEveryNumber) {
  KvMemoryQuestion question = Question();
  question.asked_bytes = 1000;
  const absl::Status status = ChooseKvMemory(question).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("would have 10 blocks"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("request needs 10 and the null block"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1.1 KiB"));
}

TEST(ChooseKvMemory, MoreThanThereIsIsRefused) {
  KvMemoryQuestion question = Question();
  question.asked_bytes = 200'000;
  EXPECT_THAT(std::string(ChooseKvMemory(question).status().message()), HasSubstr("are available"));
}

}  // namespace
}  // namespace pagoda::server
