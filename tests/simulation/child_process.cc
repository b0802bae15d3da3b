#include "tests/simulation/child_process.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/check.h"

namespace pagoda::simulation {
namespace {

void SendOutputTo(int file) {
  PAGODA_CHECK(dup2(file, STDOUT_FILENO) >= 0);
  PAGODA_CHECK(dup2(file, STDERR_FILENO) >= 0);
}

}  // namespace

ChildProcess ChildProcess::Start(const std::function<void()>& work, const ChildOptions& options) {
  std::fflush(nullptr);
  const int output = options.is_quiet ? memfd_create("child output", MFD_CLOEXEC) : -1;
  PAGODA_CHECK(output >= 0 || !options.is_quiet);
  const pid_t pid = fork();
  PAGODA_CHECK(pid >= 0);
  if (pid > 0) return {pid, output};
  if (output >= 0) SendOutputTo(output);
  alarm(static_cast<unsigned>(options.seconds));
  work();
  std::fflush(nullptr);
  _exit(0);
}

ChildEnd ChildProcess::Wait() {
  int status = 0;
  PAGODA_CHECK(waitpid(pid_, &status, 0) == pid_);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ChildEnd::kPassed;
  const bool was_stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  return was_stopped ? ChildEnd::kHung : ChildEnd::kAborted;
}

std::string ChildProcess::said() const {
  std::string text;
  if (output_ < 0) return text;
  char buffer[4096];
  PAGODA_CHECK(lseek(output_, 0, SEEK_SET) == 0);
  for (ssize_t count; (count = read(output_, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  close(output_);
  return text;
}

ChildReport RunInChild(const std::function<void()>& work, const ChildOptions& options) {
  ChildProcess child = ChildProcess::Start(work, options);
  const ChildEnd end = child.Wait();
  return {end, child.said()};
}

void* MapShared(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PAGODA_CHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace pagoda::simulation
