#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/kv_geometry.h"
#include "scheduler/block_keys.h"
#include "scheduler/events.h"
#include "scheduler/request.h"
#include "scheduler/step_plan.h"

namespace pagoda::scheduler {

struct SchedulerConfig {
  std::vector<std::int32_t> pool_blocks_per_group = {0};  // per KV group, the null block included
  std::int32_t block_size = 16;
  std::int32_t max_num_seqs = 64;
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t max_model_len = 0;
  std::int32_t max_logit_rows_per_step = 64;
  std::int32_t max_attention_chunks_per_step = 0;  // one: 64 query rows x 256 context tokens; 0: derived from the others
  std::int32_t max_queued_requests = 1024;
  std::int64_t max_queued_tokens = 4 << 20;
  std::int32_t max_in_flight = 1;
  std::int32_t max_namespaces = 1024;
  KeyDomain key_domain;
};

struct SchedulerStats {
  std::int32_t num_waiting = 0, num_running = 0;
  std::int64_t queued_tokens = 0;
  std::int32_t blocks_free = 0, blocks_owned = 0, blocks_sealed = 0, blocks_cached = 0,
               blocks_retiring = 0, blocks_total = 0;
  std::int64_t num_steps = 0, num_preemptions = 0, num_evictions = 0, num_adoptions = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
};

// Decides what each step computes: continuous batching over the block pool, by the rules of scheduler/README.md. Knows
// requests as token lists; knows no model, text, clock, thread or file.
// Owner and threads: the engine thread; all calls on it. Nothing allocates after Create, but for the buffers that enter and
// leave with a request.
class Scheduler {
 public:
  // Refuses (InvalidArgument, with the numbers) a config that could hang or could not run one full-length request.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const SchedulerConfig& config);
  virtual ~Scheduler() = default;

  // Takes the request into its tenant's queue. Requires: the gate's bounds were kept (an overflow of the queue is our bug).
  virtual void Add(NewRequest request) = 0;
  // Ends the request in any state; idempotent, also for unknown and finished ids. Blocks go by fence.
  virtual void Cancel(base::RequestId id, FinishReason reason) = 0;
  // A slow reader: planned no further until resumed, first victim for growth.
  virtual void SetPaused(base::RequestId id, bool paused) = 0;

  // The next step, or null when nothing can be planned. The plan is submitted by the caller, always.
  virtual const StepPlan* TryPlan(base::Instant now) = 0;

  // Whether this sample's first token is the next one of a live request. A stale one (cancelled, or a duplicate after
  // preemption, asserted equal to the known token) gives none and must be skipped.
  virtual std::optional<base::RequestId> RequestFor(const SampleResult& sample) const = 0;
  virtual const NewRequest& request(base::RequestId id) const = 0;
  virtual StopProgress& stop_progress(base::RequestId id) = 0;

  // The job is done: seals what it wrote, appends accepted tokens, ends requests. `outcomes` in the order of
  // result.samples; entries of stale samples are ignored. Jobs complete in order.
  virtual void Complete(const StepResult& result, std::span<const SampleOutcome> outcomes) = 0;
  // The job left nothing usable: rolls back to before it, together with every later job in flight. Each of its requests is
  // retried once with others and once alone, then ended with kFailed.
  virtual void Fail(base::JobId job) = 0;
  // No submitted job up to this one touches memory any more; releases what waited for it.
  virtual void Fence(base::JobId job) = 0;

  // Requests that ended since the last call, in order; moved out. At most max_queued + max_num_seqs at a time.
  virtual void TakeFinished(std::vector<FinishEvent>& out) = 0;

  // Blocks of the old epoch never give a hit again; running requests are unchanged. Returns the number of blocks dropped.
  virtual std::int32_t FlushPrefixCache() = 0;
  virtual std::uint64_t epoch() const = 0;

  // The earliest deadline among live requests; Never() when there is none.
  virtual base::Instant NextDeadline() const = 0;
  virtual bool idle() const = 0;  // nothing waits, runs or is in flight
  virtual SchedulerStats stats() const = 0;
  // Derives every invariant again from scratch and aborts on a violation. Tests call it after every step.
  virtual void CheckInvariants() const = 0;
};

}  // namespace pagoda::scheduler
