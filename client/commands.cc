#include "client/commands.h"

#include <variant>

namespace pagoda::client {

int Run(const std::vector<std::string>& arguments, Console& console) {
  const auto parsed = ParseCommandLine(arguments);
  if (const auto* early = std::get_if<EarlyExit>(&parsed)) {
    (early->code == kExitOk ? console.out : console.err) << early->text << std::flush;
    return early->code;
  }
  const Options& options = std::get<Options>(parsed);
  switch (options.command) {
    case Command::kGenerate:
      return RunGenerate(options, console);
    case Command::kChat:
      return RunChat(options, console);
    case Command::kTokenize:
      return RunTokenize(options, console);
    case Command::kHealth:
      return RunHealth(options, console);
    case Command::kModel:
      return RunModel(options, console);
    case Command::kInspect:
      return RunInspect(options, console);
    case Command::kBench:
      return RunBench(options, console);
    case Command::kPlan:
      return RunPlan(options, console);
  }
  return kExitUsage;
}

}  // namespace pagoda::client
