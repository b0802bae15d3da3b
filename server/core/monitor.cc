#include "server/core/monitor.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/runtime/log.h"

namespace pagoda::server {

Monitor::Monitor(const MonitorOptions& options, Pipeline& pipeline, Lifecycle& lifecycle,
                 const base::ClockSource& clock)
    : options_(options),
      pipeline_(pipeline),
      lifecycle_(lifecycle),
      clock_(clock),
      watchdog_(options.stall_limit_millis) {}

void Monitor::Start() {
  thread_ = std::jthread([this] { ThreadLoop(); });
}

void Monitor::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Monitor::Poll() {
  const base::Instant now = clock_.Now();
  pipeline_.CheckReaders(now);
  const engine::EngineStats stats = pipeline_.engine_stats();
  if (std::exchange(num_failed_steps_, stats.failed_steps) < stats.failed_steps &&
      options_.on_failed_steps) {
    options_.on_failed_steps();
  }
  const absl::Status engine = watchdog_.Observe(stats, now);
  if (absl::IsInternal(engine)) lifecycle_.SetEngineFailed();
  const bool stalled = absl::IsUnavailable(engine);
  if (stalled == was_stalled_) return;
  was_stalled_ = stalled;
  if (stalled) {
    base::LogError(absl::StrCat("health is down: ", engine.message()));
  } else {
    base::LogInfo("the engine moves again");
  }
  lifecycle_.SetEngineStalled(stalled);
}

void Monitor::ThreadLoop() {
  while (true) {
    Poll();
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.period_nanos);
    base::MutexLock lock(mutex_);
    while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
    }
    if (stopping_) return;
  }
}

}  // namespace pagoda::server
