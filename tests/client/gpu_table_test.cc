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

TEST(GpuTable, ATargetIsTheCpuAGpuByNameOrAGpuBySize) {
  EXPECT_FALSE(ParseTarget("CPU")->is_gpu);
  const auto named = ParseTarget("H100-80GB");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->name, "h100-80gb");
  for (const char* const size : {"80GiB", "85899345920"}) {
    const auto sized = ParseTarget(size);
    ASSERT_TRUE(sized.ok()) << sized.status();
    EXPECT_TRUE(sized->is_gpu);
    EXPECT_EQ(sized->name, "GPU of 80.0 GiB");
    EXPECT_EQ(sized->memory_bytes, named->memory_bytes);
  }
  EXPECT_TRUE(ParseTarget("gpu")->is_gpu);
  EXPECT_FALSE(ParseTarget("gpu")->memory_bytes.has_value());
  const absl::Status unknown = ParseTarget("abacus").status();
  EXPECT_NE(unknown.message().find("one of a10, "), std::string::npos) << unknown;
}

TEST(GpuTable, CountsOnNineTenthsOfTheMemory) {
  EXPECT_EQ(PlannableBytes(*FindGpu("h100-80gb")), 77'309'411'328);
}

}  // namespace
}  // namespace pagoda::client
