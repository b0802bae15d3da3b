#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// What Python's str can do to itself. Marks stay with their characters. Errors: InvalidArgument
// without a line.

enum class Sides : std::uint8_t { kLeft, kRight, kBoth };
// Blank space goes, or the characters of `set` where there is one.
absl::StatusOr<Value> Strip(const MarkedString& text, Sides sides, const std::optional<Value>& set,
                            Workspace& workspace);

// At each `separator`; without one, at stretches of blank space.
absl::StatusOr<Value> Split(const MarkedString& text, const std::optional<Value>& separator,
                            Workspace& workspace);

// Of ASCII only: a character outside it is an error, not left as it is.
enum class Case : std::uint8_t { kUpper, kLower, kCapital };
absl::StatusOr<Value> ChangeCase(const MarkedString& text, Case wanted, Workspace& workspace);

// The first `count`, or all.
struct Replacement {
  Value old_text, new_text;
  std::optional<Value> count;
};
absl::StatusOr<Value> Replace(const MarkedString& text, const Replacement& replacement,
                              Workspace& workspace);

}  // namespace pagoda::text::jinja
