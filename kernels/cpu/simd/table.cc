#include "kernels/cpu/simd/table.h"

#include "kernels/cpu/simd/kernels.h"

namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

KernelTable Table() {
  return {.num_lanes = kLanes,
          .multiply_int8 = MultiplyInt8,
          .multiply_float = MultiplyFloat,
          .quantize_row = QuantizeRow,
          .norm_row = NormRow,
          .add_row = AddRow,
          .silu_mul_row = SiluMulRow,
          .rotate = Rotate,
          .store_kv = StoreKv,
          .attend = Attend,
          .merge = MergePartials,
          .exp = ExpRow};
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
