#include "base/runtime/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pagoda::base {
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

}  // namespace
}  // namespace pagoda::base
