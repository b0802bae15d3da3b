#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::text::jinja {

// What one template may cost. A template comes from a model file and its input from a caller;
// neither is trusted to end.
inline constexpr int kMaxNestingDepth =
    200;  // expressions and statements, at Parse; a pair of brackets counts as two
inline constexpr int kMaxValueDepth = 32;                   // lists in lists, at Render
inline constexpr std::int64_t kMaxSteps = 10'000'000;       // about a second
inline constexpr std::int64_t kBytesPerStep = 64;           // what scanning text costs
inline constexpr std::size_t kMaxWorkingBytes = 64u << 20;  // every value made while rendering
inline constexpr std::size_t kMaxOutputBytes = 16u << 20;
// A conversation that takes no more of the working bytes than this has no part in a limit passed:
// even a loop over it inside a loop over it stays below kMaxSteps.
inline constexpr std::size_t kSmallInputBytes = 64u << 10;

}  // namespace pagoda::text::jinja
