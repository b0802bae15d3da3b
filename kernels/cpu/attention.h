#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/worker_pool.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cpu {

// Splits attention into tasks: a few tokens of one work item and one KV head over the whole
// context, or over one chunk of it where there would be too few tasks otherwise. The split is free,
// the order inside a row is not. Owner: the CPU ops. Thread: the engine's.
class Attention {
 public:
  Attention(const KernelTable& kernels, WorkerPool& pool, Device& device)
      : kernels_(kernels), pool_(pool), thread_scratch_(device), partial_scratch_(device) {}

  void Run(const AttentionParams& params);

 private:
  struct Task {
    std::int32_t work = 0;
    std::int32_t kv_head = 0;
    std::int32_t first_token = 0;
    std::int32_t num_tokens = 0;
    std::int32_t first_chunk = 0;
    std::int32_t last_chunk = 0;
    std::int64_t partial = -1;  // floats from the start of the partial states, or none
  };
  // Rows of one split block: `num_chunks` tasks wrote their states one after another from
  // `task.partial`.
  struct Split {
    Task task;
    std::int64_t num_chunks = 0;
  };

  void PlanTasks(const AttentionParams& params);
  void PlanBlock(const AttentionParams& params, Task task, bool split);
  AttentionJob MakeJob(const AttentionParams& params, const Task& task) const;
  void MergeSplit(const AttentionParams& params, const Split& split) const;

  const KernelTable& kernels_;
  WorkerPool& pool_;
  Scratch thread_scratch_;
  Scratch partial_scratch_;
  float* partials_ = nullptr;
  std::int64_t num_partial_floats_ = 0;
  std::vector<Task> tasks_;
  std::vector<Split> splits_;
};

}  // namespace pagoda::kernels::cpu
