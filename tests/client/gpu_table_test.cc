#include "client/gpu_table.h"

#include <gtest/gtest.h>

namespace pagoda::client {
namespace {

TEST(GpuTable, FindsEveryNameItShowsAndNoOther) {
  for (const Gpu& gpu : KnownGpus()) {
    ASSERT_TRUE(FindGpu(gpu.name).has_value()) << gpu.name;
    EXPECT_EQ(FindGpu(gpu.name)->memory_gib, gpu.memory_gib);
  }
  EXPECT_FALSE(FindGpu("cpu").has_value());
  EXPECT_FALSE(FindGpu("h100").has_value());
}

TEST(GpuTable, IsSortedSoThatANameStandsOnce) {
  for (std::size_t i = 1; i < KnownGpus().size(); ++i) {
    EXPECT_LT(KnownGpus()[i - 1].name, KnownGpus()[i].name);
  }
}

TEST(GpuTable, CountsOnNineTenthsOfTheMemory) {
  EXPECT_EQ(PlannableBytes(*FindGpu("h100-80gb")), 77'309'411'328);
}

}  // namespace
}  // namespace pagoda::client
