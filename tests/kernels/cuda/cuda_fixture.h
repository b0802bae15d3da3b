#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/ops/cuda_ops.h"
#include "kernels/emulation/emulated_device.h"
#include "tests/kernels/suite/kernel_suite.h"
#include "tests/kernels/suite/kv_pool.h"
#include "tests/kernels/suite/schedules.h"

namespace pagoda::kernels::cuda {

using emulation::CopyTime;
using emulation::EmulatedDevice;
using emulation::Order;
using emulation::Schedule;

// What a kernel must stand: each order once, with each time of copies about as often, or every
// schedule if PAGODA_TEST_SCHEDULES says so.
inline std::vector<Schedule> HostileSchedules() {
  if (WantsEverySchedule()) return EverySchedule();
  return {{.order = Order::kForward, .copies = CopyTime::kLate},
          {.order = Order::kReverse, .copies = CopyTime::kEarly, .resident_ctas = 2},
          {.order = Order::kRandom, .copies = CopyTime::kLate, .seed = 11, .resident_ctas = 2},
          {.order = Order::kGreedy, .copies = CopyTime::kEarly},
          {.order = Order::kGreedyReverse, .copies = CopyTime::kLate}};
}

// The CUDA backend over an emulated device, with the reference beside it.
class CudaTest : public testing::Test {
 protected:
  explicit CudaTest(const CudaOpsOptions& options = {}) {
    auto device = emulation::MakeEmulatedDevice({});
    device_ = device.get();
    auto ops = MakeCudaOps(std::move(device), options);
    EXPECT_TRUE(ops.ok()) << ops.status();
    ops_ = *std::move(ops);
  }
  void Finish() {
    const absl::Status done = device_->Await(device_->Record(stream_));
    ASSERT_TRUE(done.ok()) << done;
  }

  EmulatedDevice* device_ = nullptr;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Ops> reference_ = MakeReferenceOps();
  Stream stream_;
};

}  // namespace pagoda::kernels::cuda
