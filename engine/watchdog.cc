#include "engine/watchdog.h"

#include "absl/strings/str_cat.h"

namespace pagoda::engine {

absl::Status Watchdog::Observe(const EngineStats& stats, base::Instant now) {
  if (stats.failed) {
    return absl::InternalError(absl::StrCat("the engine has failed for good after ",
                                            stats.failed_steps,
                                            " failed steps; restart the server"));
  }
  const std::int64_t progress = stats.steps + stats.failed_steps + stats.num_finished;
  if (stats.num_runnable() <= 0 || progress != last_progress_) {
    last_progress_ = progress;
    quiet_since_ = now;
    return absl::OkStatus();
  }
  const std::int64_t quiet_millis = now.NanosSince(quiet_since_) / 1'000'000;
  if (quiet_millis < patience_millis_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("no step has ended for ", quiet_millis, " ms while ",
                                             stats.num_runnable(), " requests wait for one"));
}

}  // namespace pagoda::engine
