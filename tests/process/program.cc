#include "tests/process/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

namespace pagoda::process {

pid_t StartProgram(std::vector<std::string> words, int output, bool with_stdout) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = fork();
  PAGODA_CHECK(pid >= 0);
  if (pid > 0) return pid;
  dup2(output, STDERR_FILENO);
  if (with_stdout) dup2(output, STDOUT_FILENO);
  // An environment of its own: PAGODA_... of the shell would be flags.
  char* const environment[] = {nullptr};
  execve(pointers[0], pointers.data(), environment);
  _exit(127);
}

int WaitForExit(pid_t pid) {
  int status = 0;
  PAGODA_CHECK(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Ran RunProgram(std::vector<std::string> words) {
  int ends[2];
  PAGODA_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t pid = StartProgram(std::move(words), ends[1], /*with_stdout=*/true);
  close(ends[1]);
  Ran ran;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], buffer, sizeof buffer)) > 0) {
    ran.output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  ran.code = WaitForExit(pid);
  return ran;
}

}  // namespace pagoda::process
