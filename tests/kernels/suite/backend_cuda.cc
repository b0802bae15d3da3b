#include "kernels/cuda/ops/cuda_ops.h"
#include "kernels/emulation/emulated_device.h"
#include "tests/kernels/suite/kernel_suite.h"
#include "tests/kernels/suite/schedules.h"

namespace pagoda::kernels {
namespace {

using emulation::CopyTime;
using emulation::Order;
using emulation::Schedule;

Backend CudaBackend(const std::string& name, const Schedule& schedule, bool splits_decode) {
  return {.name = name,
          .make =
              [=] {
                auto ops = cuda::MakeCudaOps(emulation::MakeEmulatedDevice({.schedule = schedule}),
                                             {.splits_decode = splits_decode});
                EXPECT_TRUE(ops.ok()) << ops.status();
                return *std::move(ops);
              },
          .key_orders = {KeyOrder::kTokenMajor},
          .gap_bytes = 48};  // what one asynchronous copy brings is aligned
}

}  // namespace

// Under the emulator: with the decode kernel, and with all rows through the prefill kernel. Once
// each, or each under every schedule if PAGODA_TEST_SCHEDULES says so.
std::vector<Backend> Backends() {
  if (WantsEverySchedule()) {
    std::vector<Backend> all;
    for (const Schedule& schedule : EverySchedule()) {
      all.push_back(CudaBackend("cuda_" + Describe(schedule), schedule, true));
      all.push_back(CudaBackend("cuda_prefill_alone_" + Describe(schedule), schedule, false));
    }
    return all;
  }
  return {CudaBackend("cuda", {.order = Order::kForward, .copies = CopyTime::kLate}, true),
          CudaBackend(
              "cuda_prefill_alone",
              {.order = Order::kRandom, .copies = CopyTime::kEarly, .seed = 5, .resident_ctas = 2},
              false)};
}

}  // namespace pagoda::kernels
