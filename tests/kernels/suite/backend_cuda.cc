#include "kernels/cuda/ops/cuda_ops.h"
#include "kernels/emulation/emulated_device.h"
#include "tests/kernels/suite/kernel_suite.h"

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

// Under the emulator: once with the decode kernel, once with all rows through the prefill kernel.
std::vector<Backend> Backends() {
  return {CudaBackend("cuda", {.order = Order::kForward, .copies = CopyTime::kLate}, true),
          CudaBackend(
              "cuda_prefill_alone",
              {.order = Order::kRandom, .copies = CopyTime::kEarly, .seed = 5, .resident_ctas = 2},
              false)};
}

}  // namespace pagoda::kernels
