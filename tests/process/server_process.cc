#include "tests/process/server_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <utility>

#include "base/check.h"
#include "tests/process/program.h"

namespace pagoda::process {

ServerProcess::ServerProcess(const std::vector<std::string>& flags) {
  char name[] = "/tmp/pagoda-port-XXXXXX";
  const int file = mkstemp(name);
  PAGODA_CHECK(file >= 0);
  close(file);
  port_file_ = name;
  std::vector<std::string> words = {PAGODA_SERVER_PATH, "--port-file", port_file_, "--threads=1"};
  const auto add_unless_given = [&](const std::string& flag, const std::string& value) {
    if (std::ranges::find(flags, flag) == flags.end()) words.insert(words.end(), {flag, value});
  };
  add_unless_given("--listen", "127.0.0.1:0");
  add_unless_given("--kv-cache-memory", "8MiB");
  words.insert(words.end(), flags.begin(), flags.end());
  int ends[2];
  PAGODA_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  pid_ = StartProgram(std::move(words), ends[1], /*with_stdout=*/false);
  close(ends[1]);
  reader_ = std::jthread([this, pipe = ends[0]] { ReadLog(pipe); });
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  unlink(port_file_.c_str());
}

void ServerProcess::ReadLog(int pipe) {
  char buffer[4096];
  while (true) {
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    base::MutexLock lock(mutex_);
    if (got <= 0) log_closed_ = true;
    if (got > 0) log_.append(buffer, static_cast<std::size_t>(got));
    grown_.NotifyAll();
    if (got <= 0) break;
  }
  close(pipe);
}

bool ServerProcess::WaitForLog(const std::string& text) {
  base::MutexLock lock(mutex_);
  while (log_.find(text) == std::string::npos) {
    if (log_closed_) return false;
    grown_.Wait(mutex_);
  }
  return true;
}

std::string ServerProcess::address() const {
  std::string port;
  std::ifstream(port_file_) >> port;
  return "127.0.0.1:" + port;
}

void ServerProcess::Signal(int signal) const { kill(pid_, signal); }

int ServerProcess::Wait() {
  PAGODA_CHECK(pid_ > 0);
  const int code = WaitForExit(std::exchange(pid_, -1));
  // Its last words may still lie in the pipe.
  base::MutexLock lock(mutex_);
  while (!log_closed_) grown_.Wait(mutex_);
  return code;
}

std::string ServerProcess::log() const {
  base::MutexLock lock(mutex_);
  return log_;
}

}  // namespace pagoda::process
