#include "kernels/cpu/attention.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "kernels/check_shapes.h"

namespace pagoda::kernels::cpu {
namespace {

constexpr std::int64_t kTasksPerThread = 4;

std::int64_t GroupSize(const AttentionParams& params) {
  return params.num_query_heads / params.kv->num_kv_heads;
}

std::int32_t TokensPerTask(const AttentionParams& params) {
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(1, kMaxAttentionRows / GroupSize(params)));
}

std::int64_t StateFloats(const AttentionParams& params) { return params.kv->head_size + 2; }

}  // namespace

void Attention::Run(const AttentionParams& params) {
  CheckShapes(params);
  PAGODA_CHECK(params.kv->head_size % 16 == 0 && params.kv->head_size <= kMaxHeadSize);
  PlanTasks(params);
  const std::int64_t rows = std::max<std::int64_t>(kMaxAttentionRows, GroupSize(params));
  const std::int64_t scratch_floats =
      base::RoundUp<std::int64_t>(AttentionScratchFloats(rows, params.kv->head_size), 1024);
  auto* scratch = reinterpret_cast<float*>(
      thread_scratch_.Get(pool_.num_threads() * scratch_floats * std::int64_t{sizeof(float)}));
  partials_ = reinterpret_cast<float*>(
      partial_scratch_.Get(num_partial_floats_ * std::int64_t{sizeof(float)}));
  pool_.Run(static_cast<std::int64_t>(tasks_.size()), [&](std::int64_t i, int thread) {
    AttentionJob job = MakeJob(params, tasks_[static_cast<std::size_t>(i)]);
    job.scratch = scratch + thread * scratch_floats;
    kernels_.attend(job);
  });
  pool_.Run(static_cast<std::int64_t>(splits_.size()),
            [&](std::int64_t i, int) { MergeSplit(params, splits_[static_cast<std::size_t>(i)]); });
}

void Attention::PlanTasks(const AttentionParams& params) {
  tasks_.clear();
  splits_.clear();
  num_partial_floats_ = 0;
  const std::int32_t tokens_per_task = TokensPerTask(params);
  std::int64_t num_blocks = 0;
  for (const AttentionWork& work : params.work) {
    num_blocks += base::DivUp(work.num_tokens, tokens_per_task) * params.kv->num_kv_heads;
  }
  const bool split = num_blocks < pool_.num_threads() * kTasksPerThread && pool_.num_threads() > 1;
  for (std::size_t w = 0; w < params.work.size(); ++w) {
    const AttentionWork& work = params.work[w];
    for (std::int32_t first = 0; first < work.num_tokens; first += tokens_per_task) {
      for (std::int32_t head = 0; head < params.kv->num_kv_heads; ++head) {
        Task task;
        task.work = static_cast<std::int32_t>(w);
        task.kv_head = head;
        task.first_token = first;
        task.num_tokens = std::min(tokens_per_task, work.num_tokens - first);
        PlanBlock(params, task, split);
      }
    }
  }
}

void Attention::PlanBlock(const AttentionParams& params, Task task, bool split) {
  const AttentionWork& work = params.work[static_cast<std::size_t>(task.work)];
  const std::int32_t context = work.first_position + task.first_token + task.num_tokens;
  const std::int32_t num_chunks = base::DivUp(context, kAttentionChunk);
  task.last_chunk = num_chunks - 1;
  // Only one token's rows: they all see every chunk.
  if (!split || num_chunks == 1 || task.num_tokens > 1) {
    tasks_.push_back(task);
    return;
  }
  task.partial = num_partial_floats_;
  splits_.push_back({task, num_chunks});
  const std::int64_t chunk_floats = GroupSize(params) * StateFloats(params);
  for (std::int32_t chunk = 0; chunk < num_chunks; ++chunk) {
    Task part = task;
    part.first_chunk = chunk;
    part.last_chunk = chunk;
    part.partial = num_partial_floats_;
    num_partial_floats_ += chunk_floats;
    tasks_.push_back(part);
  }
}

AttentionJob Attention::MakeJob(const AttentionParams& params, const Task& task) const {
  const AttentionWork& work = params.work[static_cast<std::size_t>(task.work)];
  const std::int64_t row = work.first_row + task.first_token;
  const std::int64_t column = task.kv_head * GroupSize(params) * params.kv->head_size;
  AttentionJob job;
  job.kv = params.kv;
  job.block_table = work.block_table.data();
  job.layer = params.layer;
  job.kv_head = task.kv_head;
  job.query = params.query.Row(row) + column;
  job.query_stride = params.query.stride;
  job.out = params.out.Row(row) + column;
  job.out_stride = params.out.stride;
  job.num_tokens = task.num_tokens;
  job.group_size = static_cast<int>(GroupSize(params));
  job.first_position = work.first_position + task.first_token;
  job.scale = params.scale;
  job.first_chunk = task.first_chunk;
  job.last_chunk = task.last_chunk;
  job.partial = task.partial < 0 ? nullptr : partials_ + task.partial;
  return job;
}

void Attention::MergeSplit(const AttentionParams& params, const Split& split) const {
  const AttentionJob job = MakeJob(params, split.task);
  for (std::int64_t head = 0; head < GroupSize(params); ++head) {
    MergeJob merge;
    merge.partial = job.partial + head * StateFloats(params);
    merge.stride = GroupSize(params) * StateFloats(params);
    merge.num_chunks = split.num_chunks;
    merge.head_size = params.kv->head_size;
    merge.out = job.out + head * params.kv->head_size;
    kernels_.merge(merge);
  }
}

}  // namespace pagoda::kernels::cpu
