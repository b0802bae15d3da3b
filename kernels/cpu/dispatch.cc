#include "kernels/cpu/dispatch.h"

#include "base/check.h"
#include "kernels/cpu/simd/table.h"

namespace pagoda::kernels::cpu {

std::string_view Name(InstructionClass instruction_class) {
  switch (instruction_class) {
    case InstructionClass::kPortable:
      return "portable";
    case InstructionClass::kAvx2:
      return "avx2";
    case InstructionClass::kAvx512:
      return "avx512";
    case InstructionClass::kAvx512Vnni:
      return "avx512-vnni";
  }
  return "?";
}

std::vector<InstructionClass> AvailableInstructionClasses() {
  std::vector<InstructionClass> classes = {InstructionClass::kPortable};
  // These ask the system too: registers that it does not save are not there.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return classes;
  }
  classes.push_back(InstructionClass::kAvx2);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return classes;
  }
  classes.push_back(InstructionClass::kAvx512);
  if (__builtin_cpu_supports("avx512vnni")) classes.push_back(InstructionClass::kAvx512Vnni);
  return classes;
}

KernelTable KernelsOf(InstructionClass instruction_class) {
  switch (instruction_class) {
    case InstructionClass::kPortable:
      return portable::Table();
    case InstructionClass::kAvx2:
      return avx2::Table();
    case InstructionClass::kAvx512:
      return avx512::Table();
    case InstructionClass::kAvx512Vnni:
      return avx512_vnni::Table();
  }
  PAGODA_CHECK(false);
}

}  // namespace pagoda::kernels::cpu
