#pragma once

#include <string>
#include <vector>

#include "client/console.h"
#include "client/options.h"

namespace pagoda::client {

// The whole command: parses `arguments` (without the program's name), asks the server, prints,
// returns the exit code.
int Run(const std::vector<std::string>& arguments, Console& console);

// The single commands, each over its own channel. Returns: the exit code.
int RunGenerate(const Options& options, Console& console);
int RunChat(const Options& options, Console& console);
int RunTokenize(const Options& options, Console& console);
int RunHealth(const Options& options, Console& console);
int RunModel(const Options& options, Console& console);
int RunBench(const Options& options, Console& console);
// Of a model file; no server is asked.
int RunInspect(const Options& options, Console& console);
int RunPlan(const Options& options, Console& console);

}  // namespace pagoda::client
