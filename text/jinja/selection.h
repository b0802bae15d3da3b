#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/jinja/builtins.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// The filters that go through a sequence item by item. Errors: InvalidArgument without a line.

// Keeps the items for which the test of the item, or of its attribute, holds or does not hold.
struct Selection {
  bool keeps = true;
  std::string_view attribute;  // empty: the item itself
  std::optional<Test> test;    // absent: whether it is truthy
  std::optional<Value> argument;
};
absl::StatusOr<Value> Select(const Selection& selection, const Value& input, Workspace& workspace);

// The attribute of each item, `otherwise` where it is undefined; without an attribute, the filter
// applied to each.
struct Mapping {
  std::string_view attribute;
  std::optional<Value> otherwise;
  Filter filter = Filter::kSafe;
};
absl::StatusOr<Value> Map(const Mapping& mapping, const Value& input, Workspace& workspace);

}  // namespace pagoda::text::jinja
