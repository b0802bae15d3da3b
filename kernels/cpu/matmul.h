#pragma once

#include <cstdint>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/worker_pool.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cpu {

// Matrix products over column panels: the rows are normalised and quantized once, then panels times
// blocks of rows are the tasks. Owner: the CPU ops. Thread: the engine's.
class Matmul {
 public:
  Matmul(const KernelTable& kernels, WorkerPool& pool, Device& device)
      : kernels_(kernels), pool_(pool), int8_scratch_(device) {}

  // With a norm, params.x is norm->out, and is written.
  void Run(const MatmulParams& params, const RmsNormParams* norm);
  // out = silu(gate) * up, without storing the two.
  void RunGateUp(const MatmulParams& params, const RmsNormParams* norm, MatrixView out);

 private:
  // Panels [first_panel, last_panel) of one part, rows [first_row, last_row).
  struct Range {
    std::int64_t first_panel, last_panel;
    std::int64_t first_row, last_row;
  };
  void PrepareRows(const MatmulParams& params, const RmsNormParams* norm);
  PanelJob MakeJob(const MatmulParams& params, std::size_t part, std::int64_t panel,
                   std::int64_t first_row) const;
  void MultiplyPanel(const PanelJob& job, ActivationType activation) const;
  // Calls use(range) in tasks over all panels and rows.
  template <typename Use>
  void ForRanges(std::int64_t num_panels, std::int64_t num_rows, std::int64_t num_inputs,
                 const Use& use);

  const KernelTable& kernels_;
  WorkerPool& pool_;
  Scratch int8_scratch_;
  Int8Rows int8_rows_;
};

}  // namespace pagoda::kernels::cpu
