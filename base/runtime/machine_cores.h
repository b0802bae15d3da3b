#pragma once

#include <string>

namespace pagoda::base {

// Cores that this process can keep busy, at least 1: those it may run on, cut to the quota of its
// control group (rounded up). More threads than that would wait for one another. `root` stands
// before /proc and /sys; empty but in tests.
int AvailableCores(const std::string& root = "");

}  // namespace pagoda::base
