#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernel_table.h"

namespace pagoda::kernels::cpu {

// Which instructions the kernels are made of. All classes give the same bits; they differ in speed
// only.
enum class InstructionClass : std::uint8_t {
  kPortable,    // plain C++, for machines without AVX2: slow, and used in tests
  kAvx2,        // AVX2, FMA, F16C
  kAvx512,      // AVX-512 F, BW, DQ, VL
  kAvx512Vnni,  // those and VNNI
};

std::string_view Name(InstructionClass instruction_class);

// What this machine and its system can run, best last. Never empty.
std::vector<InstructionClass> AvailableInstructionClasses();

// Requires: the class is available.
KernelTable KernelsOf(InstructionClass instruction_class);

}  // namespace pagoda::kernels::cpu
