#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/jinja/syntax_tree.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// The operators of expressions, with Python's meaning. Errors: InvalidArgument without a line.

// Both operands are values; `+` of two strings is the evaluator's own, which appends in place.
absl::StatusOr<Value> Calculate(ArithmeticOperator op, const Value& a, const Value& b,
                                Workspace& workspace);
absl::StatusOr<Value> Negate(const Value& value);
absl::StatusOr<bool> Compare(ComparisonOperator op, const Value& a, const Value& b,
                             Workspace& workspace);

// value.name and value[index]: Undefined when there is none, an error when the value itself is
// undefined.
absl::StatusOr<Value> Attribute(const Value& value, std::string_view name, Workspace& workspace);
absl::StatusOr<Value> Subscript(const Value& value, const Value& index, Workspace& workspace);

// value[start:stop:step] of a list or a string; none stands for an absent bound.
struct SliceBounds {
  Value start = None{}, stop = None{}, step = None{};
};
absl::StatusOr<Value> Slice(const Value& value, const SliceBounds& bounds, Workspace& workspace);

}  // namespace pagoda::text::jinja
