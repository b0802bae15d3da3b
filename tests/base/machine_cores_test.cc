#include "base/runtime/machine_cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace pagoda::base {
namespace {

class MachineCoresTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const int machine_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string root_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MachineCoresTest, AreThoseOfTheMachineWithoutAQuota) {
  EXPECT_EQ(AvailableCores(root_), machine_);
  Write("/proc/self/cgroup", "0::/pod\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(AvailableCores(root_), machine_);
  Write("/sys/fs/cgroup/pod/cpu.max", "100000000 100000\n");
  EXPECT_EQ(AvailableCores(root_), machine_);
}

TEST_F(MachineCoresTest, AreCutToTheTightestQuotaAndNeverNone) {
  Write("/proc/self/cgroup", "0::/slice/pod\n");
  Write("/sys/fs/cgroup/slice/cpu.max", "50000 100000\n");
  Write("/sys/fs/cgroup/slice/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(AvailableCores(root_), 1);
}

TEST_F(MachineCoresTest, ABrokenFileIsNoQuota) {
  Write("/proc/self/cgroup", "0::/\n");
  for (const char* text : {"", "100000", "50000 0", "50000 many"}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(AvailableCores(root_), machine_) << text;
  }
}

}  // namespace
}  // namespace pagoda::base
