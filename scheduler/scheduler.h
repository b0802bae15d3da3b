#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "scheduler/events.h"
#include "scheduler/receipt.h"
#include "scheduler/request.h"
#include "scheduler/scheduler_config.h"
#include "scheduler/step_plan.h"
#include "scheduler/tenant_config.h"

namespace pagoda::scheduler {

struct SchedulerState;

struct SchedulerStats {
  std::int32_t num_waiting = 0, num_running = 0;  // requests, however many choices they have
  std::int64_t queued_tokens = 0;
  std::int32_t blocks_free = 0, blocks_owned = 0, blocks_sealed = 0, blocks_cached = 0,
               blocks_retiring = 0, blocks_public = 0, blocks_total = 0;
  std::int64_t num_steps = 0, num_preemptions = 0, num_evictions = 0, num_adoptions = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
};

// Decides what each step computes: continuous batching over the block pool, by the rules of
// scheduler/README.md. Knows requests as token lists; knows no model, text, clock, thread or file.
// Owner and threads: the engine thread; all calls on it. Nothing allocates after Create, but for
// the buffers that enter and leave with a request.
class Scheduler {
 public:
  // Refuses (InvalidArgument, with the numbers) a config that could hang.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const SchedulerConfig& config);
  // For Create: the state's type is complete only inside this folder.
  explicit Scheduler(std::unique_ptr<SchedulerState> state);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  std::size_t num_tenants() const;
  std::int32_t block_size() const;
  // The most samples one step can have.
  std::int32_t max_num_seqs() const;
  // Blocks one request can ever hold: ModelLimits::capacity_blocks of this config and tenant.
  // Requires: Create accepts the config.
  static std::int32_t CapacityBlocks(const SchedulerConfig& config,
                                     base::TenantId tenant = kDefaultTenant);
  // Choices one request can ever have: ModelLimits::max_num_seqs of this config and tenant.
  static std::int32_t MaxChoices(const SchedulerConfig& config,
                                 base::TenantId tenant = kDefaultTenant);

  // New weights, reserves and limits; the tenants stay as many and in their order. Refuses like
  // Create. Takes effect at the first step at which what is held and waits fits the new ones; until
  // then (is_reconfiguring) the gate lets in only what fits both. A later call replaces one that
  // still waits.
  absl::Status Reconfigure(std::vector<TenantConfig> tenants);
  bool is_reconfiguring() const;

  // Takes the request into its tenant's queue. Requires: the gate's bounds were kept (an overflow
  // of the queue is our bug), the id is new, the prompt is attached, cache_namespace is set, the
  // worst case fits the pool.
  void Add(NewRequest request);
  // Takes a request whose prompt is to be a prefix that every prompt of its readers may begin with
  // (none: everybody's): computed like any other, and when it has finished its blocks are the
  // public lane's for good. Refuses (FailedPrecondition, with the numbers) what does not fit into
  // public_blocks. Requires: before the first Add; max_tokens is 1.
  absl::Status AddPublicPrefix(NewRequest request, std::vector<base::TenantId> readers);
  // Ends the request in any state; idempotent, also for unknown and finished ids. Blocks go by
  // fence.
  void Cancel(base::RequestId id, FinishReason reason);
  // A slow reader: planned no further until resumed, first victim for growth. Unknown and finished
  // ids are ignored.
  void SetPaused(base::RequestId id, bool paused);

  // The next step, or null when nothing can be planned now: nothing to do, all waits for jobs in
  // flight, or max_in_flight jobs are out. The plan is submitted by the caller, always; a
  // submission that fails is reported by Fail and Fence.
  const StepPlan* TryPlan(base::Instant now);

  // Whether this sample's first token is the next one of a live request. A stale one (cancelled, or
  // a duplicate after preemption, asserted equal to the known token) gives none and must be
  // skipped, as must one of a choice that ended. Requires: the sample belongs to the oldest job in
  // flight.
  std::optional<base::RequestId> RequestFor(const SampleResult& sample) const;
  // Whose prompt these scores are about, and the position of the first of them that is new; none
  // when the request has ended or nothing is new. Requires: as for RequestFor.
  std::optional<ScorePlace> PlaceOf(const ScoreResult& score) const;
  // Requires: the request is live.
  const NewRequest& request(base::RequestId id) const;
  StopProgress& stop_progress(base::RequestId id, std::uint32_t choice = 0);

  // The job is done: seals what it wrote, appends accepted tokens, ends requests. `outcomes` in the
  // order of result.samples; entries of stale samples are ignored, as is the whole call for a job
  // that an earlier Fail voided. A sample that is not finite ends its request with kNonFinite.
  // Requires: jobs complete in order.
  void Complete(const StepResult& result, std::span<const SampleOutcome> outcomes);
  // The job left nothing usable: rolls back to before it, together with every later job in flight
  // (those are void: they need a Fence, and Complete or Fail of them does nothing). Each of its
  // requests is retried once with others and once alone, then ended with kFailed. Requires: the
  // oldest job in flight, or a void one.
  void Fail(base::JobId job);
  // No submitted job up to this one touches memory any more; releases what waited for it. Requires:
  // each was completed, failed or voided.
  void Fence(base::JobId job);

  // Requests that ended since the last call, in order; moved out. At most max_queued_requests +
  // max_num_seqs at a time.
  void TakeFinished(std::vector<FinishEvent>& out);

  // Blocks of the old epoch of one tenant, or of all, never give a hit again, and those that nobody
  // holds are zeroed by the next plans; running requests are unchanged. Returns the number of
  // blocks dropped.
  std::int32_t FlushPrefixCache(std::optional<base::TenantId> only = std::nullopt);
  // Keys of a tenant's prompts are made under its own epoch.
  std::uint64_t epoch(base::TenantId tenant = kDefaultTenant) const;

  // When TryPlan has something to do though nothing else happens: the earliest deadline of a live
  // request, or the end of a cached block's time. Never() when there is none.
  base::Instant NextDeadline() const;
  bool idle() const;  // nothing waits, runs or is in flight
  SchedulerStats stats() const;
  TenantStats tenant_stats(base::TenantId tenant) const;
  // Where every block has been at every submitted step; sums to pool x steps (README.md,
  // "Receipts").
  BlockStepTotals block_step_totals() const;
  // The whole state as bytes (snapshot.h); returns how many, or 0 when `out` is too small.
  // Requires: every finished request was taken.
  std::size_t Snapshot(std::span<std::uint8_t> out) const;
  // Derives every invariant again from scratch and aborts on a violation. Tests call it after every
  // step.
  void CheckInvariants() const;

 private:
  std::unique_ptr<SchedulerState> state_;
};

}  // namespace pagoda::scheduler
