#pragma once

#include <istream>
#include <ostream>

#include "client/interrupts.h"

namespace pagoda::client {

// The streams a command talks through, and whether a person sits at them. Tests pass string
// streams.
struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Interrupts& interrupts;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
};

}  // namespace pagoda::client
