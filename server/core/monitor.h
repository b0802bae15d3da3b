#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "base/runtime/clock.h"
#include "base/runtime/mutex.h"
#include "engine/watchdog.h"
#include "server/core/lifecycle.h"
#include "server/core/pipeline.h"

namespace pagoda::server {

struct MonitorOptions {
  std::int64_t period_nanos = 100'000'000;
  std::int64_t stall_limit_millis = 60'000;
  // Steps have failed since it was last asked. On the monitor's thread, which waits meanwhile.
  std::function<void()> on_failed_steps = {};
};

// The thread that looks at everything now and again: slow readers, a stalled engine. Owner: main;
// destroyed before the pipeline. Poll is public so that tests do without the thread.
class Monitor {
 public:
  Monitor(const MonitorOptions& options, Pipeline& pipeline, Lifecycle& lifecycle,
          const base::ClockSource& clock);
  ~Monitor() { Stop(); }

  void Start();
  void Stop() PAGODA_EXCLUDES(mutex_);
  void Poll();

 private:
  void ThreadLoop() PAGODA_EXCLUDES(mutex_);

  const MonitorOptions options_;
  Pipeline& pipeline_;
  Lifecycle& lifecycle_;
  const base::ClockSource& clock_;
  engine::Watchdog watchdog_;
  bool was_stalled_ = false;
  std::int64_t num_failed_steps_ = 0;

  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ PAGODA_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace pagoda::server
