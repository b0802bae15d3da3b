#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace pagoda::base {
namespace {

std::atomic<FaultHook> fault_hook{nullptr};

}  // namespace

void SetFaultHook(FaultHook hook) { fault_hook.store(hook); }

void FailCheck(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%.*s\n", file, line, condition,
               detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::fflush(stderr);
  // Taken once: a check that fails inside the hook must not run it again.
  if (FaultHook hook = fault_hook.exchange(nullptr)) hook();
  std::abort();
}

}  // namespace pagoda::base
