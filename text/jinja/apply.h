#pragma once

#include <array>
#include <optional>

#include "absl/status/statusor.h"
#include "text/jinja/builtins.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Arguments as they came out of evaluation, by parameter; absent where the call gave none.
using ArgumentValues = std::array<std::optional<Value>, kMaxParameters>;

// The filters, tests and methods at work. Errors: InvalidArgument without a line.
absl::StatusOr<Value> ApplyFilter(Filter filter, const Value& input,
                                  const ArgumentValues& arguments, Workspace& workspace);
absl::StatusOr<Value> CallMethod(Method method, const Value& object,
                                 const ArgumentValues& arguments, Workspace& workspace);
// Requires: an argument exactly where TakesArgument(test).
absl::StatusOr<bool> ApplyTest(Test test, const Value& input, const std::optional<Value>& argument,
                               Workspace& workspace);

}  // namespace pagoda::text::jinja
