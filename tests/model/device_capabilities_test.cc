#include "model/device_capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::model {
namespace {

using testing::HasSubstr;

TEST(DeviceCapabilities, AreThoseOfTheBackendThatTheDeviceRuns) {
  const auto cpu = CapabilitiesOf("cpu");
  const auto cuda = CapabilitiesOf("emulated-cuda");
  ASSERT_TRUE(cpu.ok() && cuda.ok());
  EXPECT_EQ(cpu->backend, "cpu");
  EXPECT_EQ(cpu->pack_layout, kernels::PackLayout::kColumnPanels);
  EXPECT_EQ(cuda->backend, "cuda");
  EXPECT_EQ(cuda->pack_layout, kernels::PackLayout::kBf16Rows);
}

TEST(DeviceCapabilities, ADeviceThatIsNotBuiltOrNoneIsRefusedByName) {
  const absl::Status unbuilt = CapabilitiesOf("cuda").status();
  EXPECT_EQ(unbuilt.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unbuilt.message()), HasSubstr("no CUDA driver"));
  const absl::Status unknown = CapabilitiesOf("tpu").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("device 'tpu'; expected cpu"));
}

}  // namespace
}  // namespace pagoda::model
