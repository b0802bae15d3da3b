#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/lanes.h"

// The kernels of one instruction class; table.cc gathers them.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

void MultiplyInt8(const PanelJob& job);
void MultiplyFloat(const PanelJob& job);
void QuantizeRow(const float* in, const Int8Rows& out);
void NormRow(const float* in, std::int64_t num_inputs, const RowNorm& norm, float* out);
void AddRow(const float* addend, std::int64_t count, float* inout);
void SiluMulRow(const float* gate, const float* up, std::int64_t count, float* out);
void ExpRow(const float* in, std::int64_t count, float* out);
void Rotate(const RopeJob& job);
void StoreKv(const StoreKvJob& job);
void Attend(const AttentionJob& job);
void MergePartials(const MergeJob& job);

// Writes the finished products of one row and panel.
inline void StorePanelRow(const PanelJob& job, std::int64_t row, const float* products) {
  float* out = job.out + row * job.out_stride;
  if (job.num_columns == 32) {
    for (int c = 0; c < 32; c += kLanes) {
      Float value = Load(products + c);
      if (job.add) value = Load(out + c) + value;
      Store(out + c, value);
    }
    return;
  }
  for (int c = 0; c < job.num_columns; ++c) out[c] = job.add ? out[c] + products[c] : products[c];
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
