#include "client/progress.h"

#include <array>
#include <cstdio>
#include <iterator>
#include <utility>

namespace pagoda::client {

Progress::Progress(Console& console, std::string_view what)
    : Progress(console, [text = std::string(what)] { return text; }) {}

Progress::Progress(Console& console, std::function<std::string()> what)
    : console_(console), what_(std::move(what)) {
  if (console_.err_is_terminal) thread_ = std::jthread([this] { Draw(); });
}

void Progress::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Progress::Draw() {
  using Clock = std::chrono::steady_clock;
  static constexpr std::array<char, 4> kFrames = {'|', '/', '-', '\\'};
  const auto begin = Clock::now();
  auto next = begin + kQuiet;
  bool drawn = false;
  for (std::size_t frame = 0;;) {
    {
      base::MutexLock lock(mutex_);
      while (!stopped_ && Clock::now() < next) stopped_changed_.WaitUntil(mutex_, next);
      if (stopped_) break;
    }
    char seconds[32];
    std::snprintf(seconds, std::size(seconds), "%.1f s",
                  std::chrono::duration<double>(Clock::now() - begin).count());
    console_.err << "\r" << kFrames[frame++ % kFrames.size()] << " " << what_() << " " << seconds
                 << "\x1b[K" << std::flush;
    drawn = true;
    next += kRedraw;
  }
  if (drawn) console_.err << "\r\x1b[K" << std::flush;
}

}  // namespace pagoda::client
