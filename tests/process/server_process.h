#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/runtime/mutex.h"

namespace pagoda::process {

// A real pagoda-server on loopback, with the flags a test gives, and its log. Killed at the end if
// it still runs. Threads: the test's; a reader thread keeps the log.
class ServerProcess {
 public:
  explicit ServerProcess(const std::vector<std::string>& flags);
  ~ServerProcess();

  // Blocks until the log has `text`, or the process has closed its log. Returns whether it has.
  bool WaitForLog(const std::string& text) PAGODA_EXCLUDES(mutex_);
  // After WaitForLog("serving").
  std::string address() const;
  void Signal(int signal) const;
  // Blocks until it has exited; the code, or 128 + the signal that ended it.
  int Wait();
  std::string log() const PAGODA_EXCLUDES(mutex_);

 private:
  void ReadLog(int pipe) PAGODA_EXCLUDES(mutex_);

  pid_t pid_ = -1;
  std::string port_file_;
  mutable base::Mutex mutex_;
  base::CondVar grown_;
  std::string log_ PAGODA_GUARDED_BY(mutex_);
  bool log_closed_ PAGODA_GUARDED_BY(mutex_) = false;
  std::jthread reader_;
};

}  // namespace pagoda::process
