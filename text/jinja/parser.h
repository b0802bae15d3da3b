#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "text/jinja/syntax_tree.h"

namespace pagoda::text::jinja {

// Source to tree. Whatever this engine does not have (a tag, a filter, a test, a method, a
// function, an operator) is refused here, by name and line, so that a template that loads has
// everything it may ask for. Nesting is bounded by kMaxNestingDepth. Requires: valid UTF-8.
absl::StatusOr<SyntaxTree> ParseTemplate(std::string_view source);

}  // namespace pagoda::text::jinja
