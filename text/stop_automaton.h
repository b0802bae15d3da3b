#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/stop_condition.h"
#include "text/tokenizer.h"

namespace pagoda::text {

inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxStopStringBytes = 256;

// An automaton over bytes for the stop strings; `control` as in the text that they are looked for
// in. `tokenizer` must outlive it. Errors: FieldError "stop" for too many, an empty one, or one too
// long.
absl::StatusOr<std::unique_ptr<const base::StopCondition>> MakeStopAutomaton(
    std::span<const std::string> stops, const Tokenizer& tokenizer,
    ControlTokens control = ControlTokens::kSkipped);

}  // namespace pagoda::text
