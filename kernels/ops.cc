#include "kernels/ops.h"

namespace pagoda::kernels {

void Ops::NormMatmul(const NormMatmulParams& params, Stream stream) {
  RmsNorm(params.norm, stream);
  Matmul(params.matmul, stream);
}

void Ops::GateUp(const GateUpParams& params, Stream stream) {
  if (params.norm.has_value()) RmsNorm(*params.norm, stream);
  Matmul(params.gate_up, stream);
  SiluMul({.gate_up = params.gate_up.out, .out = params.out}, stream);
}

void Ops::RopeAndWriteKv(const RopeAndWriteKvParams& params, Stream stream) {
  Rope(params.rope, stream);
  WriteKv(params.write, stream);
}

}  // namespace pagoda::kernels
