#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/runtime/mutex.h"
#include "client/console.h"

namespace pagoda::client {

// A line on the error stream that says what is being waited for and for how long, once it has taken
// a second; only on a terminal. Stop (or the end of its life) wipes the line. Threads: one owner;
// draws from its own thread.
class Progress {
 public:
  Progress(Console& console, std::string_view what);
  // The words anew for every drawing, on the drawing thread.
  Progress(Console& console, std::function<std::string()> what);
  ~Progress() { Stop(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Before anything else is written. May be called again.
  void Stop() PAGODA_EXCLUDES(mutex_);

  static constexpr std::chrono::milliseconds kQuiet{1000};
  static constexpr std::chrono::milliseconds kRedraw{100};

 private:
  void Draw() PAGODA_EXCLUDES(mutex_);

  Console& console_;
  const std::function<std::string()> what_;
  base::Mutex mutex_;
  base::CondVar stopped_changed_;
  bool stopped_ PAGODA_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace pagoda::client
