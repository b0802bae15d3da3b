#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "client/commands.h"
#include "tests/client/waitable_buffer.h"

namespace pagoda::client {

// Runs of the command with string streams for a console. Threads: one runs, others may wait for
// out_buffer and trigger interrupts.
struct CommandSession {
  std::istringstream in;
  WaitableBuffer out_buffer;
  std::ostream out{&out_buffer};
  std::ostringstream err;
  Interrupts interrupts;
  bool on_terminal = false;

  int Run(const std::vector<std::string>& arguments) {
    Console console{.in = in,
                    .out = out,
                    .err = err,
                    .interrupts = interrupts,
                    .out_is_terminal = on_terminal,
                    .err_is_terminal = on_terminal};
    return client::Run(arguments, console);
  }
  std::string text() { return out_buffer.str(); }
};

}  // namespace pagoda::client
