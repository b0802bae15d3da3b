// What scripts/gpu-check asks of a GPU, asked of the emulator: the checks themselves are sound, and
// both mean the same by every primitive.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cuda/mutation.cuh"
#include "kernels/emulation/emulator.h"
#include "tests/gpu/conformance_checks.cuh"

namespace pagoda::gpu_check {
namespace {

template <typename Function>
struct ArgumentsOf;
template <typename Arguments>
struct ArgumentsOf<void (*)(Arguments)> {
  using Type = Arguments;
};

template <auto kKernel>
void Call(const void* arguments) {
  kKernel(*static_cast<const typename ArgumentsOf<decltype(kKernel)>::Type*>(arguments));
}

class EmulatedMachine {
 public:
  explicit EmulatedMachine(cuda::Mutation planted = cuda::Mutation::kNone) : planted_(planted) {}

  template <typename T>
  T* Allocate(std::size_t count) {
    // Exact, so that AddressSanitizer sees an element too many.
    void* memory = nullptr;
    EXPECT_EQ(posix_memalign(&memory, kAlignment, count * sizeof(T)), 0);
    std::memset(memory, 0, count * sizeof(T));
    memory_.emplace_back(memory, &std::free);
    return static_cast<T*>(memory);
  }
  template <auto kKernel, typename Arguments>
  std::string Launch(Grid grid, int threads, int shared_bytes, const Arguments& arguments) {
    const absl::Status status =
        emulator_.Run({.kernel = Call<kKernel>,
                       .arguments = &arguments,
                       .grid = {grid.x, grid.y, grid.z},
                       .num_threads = static_cast<std::uint32_t>(threads),
                       .shared_bytes = static_cast<std::size_t>(shared_bytes),
                       .name = "check"},
                      {.order = kernels::emulation::Order::kGreedy,
                       .planted_fault = static_cast<std::uint8_t>(planted_)});
    return std::string(status.message());
  }

 private:
  static constexpr std::size_t kAlignment = 64;  // what 16-byte copies need, and more

  const cuda::Mutation planted_;
  kernels::emulation::Emulator emulator_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
};

TEST(GpuCheck, TheEmulatorPassesEveryCheck) {
  EmulatedMachine machine;
  int num_checks = 0;
  RunChecks(machine, [&num_checks](const Outcome& outcome) {
    ++num_checks;
    EXPECT_TRUE(outcome.passed) << outcome.name << ": " << outcome.detail;
    // Only a chain of matrix products has bits that are the machine's own.
    EXPECT_EQ(outcome.vectors.size(), num_checks == 1 ? 16u : 0u) << outcome.name;
    for (const std::string& line : outcome.vectors) {
      EXPECT_EQ(line.size(), 6u * (256 + 128) * 4 + 2 * 128 * 8 + 3);
    }
  });
  EXPECT_EQ(num_checks, 24);
}

// Some are races, and a report of one fails the program whatever the check finds.
#if !defined(PAGODA_WATCHES_RACES)
// Each planted fault, of those that stay in the memory they are given, fails the check of its
// kernel.
TEST(GpuCheck, EveryCheckOfAKernelFailsOnAFaultOfIt) {
  using cuda::Mutation;
  const auto failed = [](const Outcome& outcome) { return !outcome.passed; };
  for (const Mutation mutation : {Mutation::kGemmTakesTheNextStage, Mutation::kGemmSwapsHalves}) {
    EmulatedMachine machine(mutation);
    EXPECT_TRUE(failed(CheckGemm(machine))) << static_cast<int>(mutation);
  }
  for (const Mutation mutation :
       {Mutation::kAttentionSeesOneTokenLess, Mutation::kAttentionMergeForgetsTheOld,
        Mutation::kAttentionOneHeadForAll, Mutation::kDecodeNoSecondShuffle}) {
    EmulatedMachine machine(mutation);
    EXPECT_TRUE(failed(AttentionCheck<EmulatedMachine, 64, 8>(machine, 3, 4).Run()))
        << static_cast<int>(mutation);
  }
  for (const Mutation mutation :
       {Mutation::kEmbedOneTokenForAll, Mutation::kNormLosesHalfTheLanes, Mutation::kNormNoEpsilon,
        Mutation::kAddOneRowForAll, Mutation::kSiluMulSwapsItsFactors,
        Mutation::kRopeTurnsBackwards, Mutation::kRopeTakesOtherPairs,
        Mutation::kWriteKvToTheNextToken, Mutation::kZeroBlocksForgetsValues,
        Mutation::kCopyBlocksTakesWholeBlocks}) {
    EmulatedMachine machine(mutation);
    bool found = false;
    RunRowChecks(machine, [&](const Outcome& outcome) { found = found || failed(outcome); });
    EXPECT_TRUE(found) << static_cast<int>(mutation);
  }
  for (const Mutation mutation :
       {Mutation::kSampleTopKKeepsOneMore, Mutation::kSampleTopPKeepsOneMore,
        Mutation::kSampleTakesAnothersWord}) {
    EmulatedMachine machine(mutation);
    EXPECT_TRUE(failed(CheckSample(machine))) << static_cast<int>(mutation);
  }
}
#endif

}  // namespace
}  // namespace pagoda::gpu_check
