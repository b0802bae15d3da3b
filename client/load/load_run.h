#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/runtime/mutex.h"
#include "client/load/load_options.h"
#include "client/load/load_plan.h"
#include "client/load/load_tally.h"
#include "client/load/load_transport.h"

namespace pagoda::client {

struct LoadResult {
  LoadTally tally;
  double seconds = 0;  // from the start to the end of the last reply
  bool stopped = false;
};

// One run of a load: callers, each on a thread of its own, take the next request when they are free
// and hold none in advance. So nothing queues here: an open-loop request that finds no caller free
// is sent late, and its times begin when it should have been sent all the same. Memory is bounded
// by the callers and kMaxStoredSamples. Owner and thread: one runs it; Stop and the counters from
// any.
class LoadRun {
 public:
  LoadRun(const LoadOptions& options, const LoadPlan& plan, LoadTransport& transport,
          LoadPacer& pacer);

  // Once. Blocks until the last reply has ended.
  LoadResult Run();
  // No request begins any more, and those under way are cancelled. What had finished is kept.
  void Stop() PAGODA_EXCLUDES(mutex_);

  std::int64_t num_sent() const { return num_sent_; }
  std::int64_t num_finished() const { return num_finished_; }
  std::int64_t num_failed() const { return num_failed_; }
  std::int64_t output_tokens() const { return output_tokens_; }

 private:
  struct Turn {
    std::int64_t index = 0;
    std::optional<base::Instant> intended;  // none: as soon as it can be
  };

  std::optional<Turn> NextTurn() PAGODA_EXCLUDES(mutex_);
  bool stopped() PAGODA_EXCLUDES(mutex_);
  void Work(std::int32_t caller, LoadTally& tally);

  const LoadOptions options_;
  const LoadPlan& plan_;
  LoadTransport& transport_;
  LoadPacer& pacer_;
  base::Instant start_;

  base::Mutex mutex_;
  std::int64_t next_index_ PAGODA_GUARDED_BY(mutex_) = 0;
  std::optional<ArrivalTimes> arrivals_ PAGODA_GUARDED_BY(mutex_);
  bool stopped_ PAGODA_GUARDED_BY(mutex_) = false;

  std::atomic<std::int64_t> num_sent_ = 0, num_finished_ = 0, num_failed_ = 0, output_tokens_ = 0;
};

}  // namespace pagoda::client
