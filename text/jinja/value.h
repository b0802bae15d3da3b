#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "text/jinja/builtins.h"
#include "text/jinja/marked_string.h"

namespace pagoda::text::jinja {

class Workspace;

// What expressions evaluate to, with Python's meaning. A value is plain data that points into the
// Workspace of its rendering; strings, lists and dicts never change once made, so values are shared
// freely.
struct Undefined {
  std::string_view what;  // the name that was asked for; of the template or of the workspace
};
struct None {};
struct List;
struct Dict;
struct Namespace;
struct Loop;
using Value = std::variant<Undefined, None, bool, std::int64_t, double, const MarkedString*,
                           const List*, const Dict*, Namespace*, const Loop*, Function>;

struct List {
  // A view (a dict's items) has a length but no places, a stream (what a selecting filter gives)
  // has neither: both are only walked over, and turned into a list by the filter of that name.
  enum class Kind : std::uint8_t { kList, kView, kStream };
  std::vector<Value> items;
  int depth = 1;  // of lists and dicts in each other
  Kind kind = Kind::kList;
};
struct Dict {
  std::vector<std::pair<Value, Value>>
      entries;  // in order of insertion; keys are none, bool, integer or string
  int depth = 1;
};
struct Namespace {
  std::vector<std::pair<std::string_view, Value>> attributes;
};
struct Loop {
  const std::vector<Value>* items = nullptr;
  std::int64_t index = 0;  // from 0

  std::int64_t length() const { return static_cast<std::int64_t>(items->size()); }
};

// "str", "NoneType" ... as Python names it.
std::string_view TypeName(const Value& value);
bool IsTruthy(const Value& value);
// An integer; a bool counts as 0 or 1. Nothing for any other type.
std::optional<std::int64_t> AsInteger(const Value& value);
// A list with places; null for any other value.
const List* AsList(const Value& value);

// Errors from here on: InvalidArgument without a line, which the evaluator adds.
absl::Status TypeError(std::string_view what, const Value& value);

// Python's ==.
absl::StatusOr<bool> Equals(const Value& a, const Value& b, Workspace& workspace);
// Negative, zero or positive. TypeError for types without an order.
absl::StatusOr<int> Order(const Value& a, const Value& b, Workspace& workspace);
// Python's `needle in haystack`.
absl::StatusOr<bool> Contains(const Value& haystack, const Value& needle, Workspace& workspace);
// Python's str(). Lists and dicts are refused: their Python spelling is not for prompts (use
// tojson).
absl::StatusOr<const MarkedString*> ToText(const Value& value, Workspace& workspace);
// What a `for` or a filter walks over: items, keys or characters.
absl::StatusOr<const std::vector<Value>*> Items(const Value& value, Workspace& workspace);
// The index of the entry, or nothing when the dict has no such key.
absl::StatusOr<std::optional<std::size_t>> FindKey(const Dict& dict, const Value& key,
                                                   Workspace& workspace);

}  // namespace pagoda::text::jinja
