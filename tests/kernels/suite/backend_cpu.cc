#include "kernels/cpu/cpu_ops.h"
#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {
namespace {

Backend CpuBackend(cpu::InstructionClass instruction_class, int num_threads) {
  std::string name = std::string(cpu::Name(instruction_class)) + "_" + std::to_string(num_threads);
  for (char& c : name) c = c == '-' ? '_' : c;
  return {name, [=] {
            auto ops = cpu::MakeCpuOps({.num_threads = num_threads,
                                        .pin_threads = false,
                                        .instruction_class = instruction_class});
            EXPECT_TRUE(ops.ok()) << ops.status();
            return *std::move(ops);
          }};
}

}  // namespace

// Every class that this machine can run, not only its best, alone and with threads.
std::vector<Backend> Backends() {
  std::vector<Backend> backends;
  for (const cpu::InstructionClass available : cpu::AvailableInstructionClasses()) {
    for (const int num_threads : {1, 3}) backends.push_back(CpuBackend(available, num_threads));
  }
  return backends;
}

}  // namespace pagoda::kernels
