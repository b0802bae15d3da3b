#pragma once

#include <string_view>

// CHECK is for our own bugs only, in release builds too: it prints the condition and the place,
// runs the installed fault hook (the engine's journal dump), and aborts. Mistakes of callers and
// files are absl::Status.
namespace pagoda::base {

// Runs before the abort of a failed CHECK. Must not allocate much and must not CHECK itself. Null
// removes it.
using FaultHook = void (*)();
void SetFaultHook(FaultHook hook);

[[noreturn]] void FailCheck(const char* file, int line, const char* condition,
                            std::string_view detail);

}  // namespace pagoda::base

#define PAGODA_CHECK(condition)                                      \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::pagoda::base::FailCheck(__FILE__, __LINE__, #condition, {}); \
    }                                                                \
  } while (false)

// `detail` is anything convertible to std::string_view; it is evaluated only on failure.
#define PAGODA_CHECK_MSG(condition, detail)                                \
  do {                                                                     \
    if (!(condition)) [[unlikely]] {                                       \
      ::pagoda::base::FailCheck(__FILE__, __LINE__, #condition, (detail)); \
    }                                                                      \
  } while (false)
