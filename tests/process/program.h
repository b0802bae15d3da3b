#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace pagoda::process {

// Starts words[0] with the other words and an empty environment; what it writes to stdout (when
// `with_stdout`) and stderr goes to `output`. Returns its id.
pid_t StartProgram(std::vector<std::string> words, int output, bool with_stdout);

// The exit code, or 128 + the signal that ended it. Blocks until then.
int WaitForExit(pid_t pid);

struct Ran {
  int code = 0;
  std::string output;  // stdout and stderr as they came
};
// Runs a program to its end.
Ran RunProgram(std::vector<std::string> words);

}  // namespace pagoda::process
