#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "text/jinja/builtins.h"
#include "text/jinja/syntax_tree.h"
#include "text/jinja/template_error.h"

namespace pagoda::text::jinja {

// Puts arguments where the signature wants them. `what` is "filter", "method" or "function".
template <typename Id>
absl::StatusOr<BoundArguments> BindArguments(
    const Signature<Id>& signature, std::string_view what,
    const std::vector<std::pair<std::string, ExpressionId>>& arguments, std::uint32_t line) {
  BoundArguments bound;
  std::size_t num_positional = 0;
  for (const auto& [name, value] : arguments) {
    std::size_t slot = 0;
    if (name.empty()) {
      slot = num_positional++;
    } else {
      while (slot < signature.num_parameters && signature.parameters[slot] != name) ++slot;
    }
    if (slot >= signature.num_parameters) {
      const std::string which = name.empty() ? absl::StrCat("argument ", num_positional)
                                             : absl::StrCat("argument '", name, "'");
      return NotSupported(line, absl::StrCat(which, " of the ", base::ToAbsl(what), " '",
                                             base::ToAbsl(signature.name), "'"));
    }
    if (bound[slot].has_value()) {
      return ErrorAtLine(
          line, absl::StrCat("an argument of '", base::ToAbsl(signature.name), "' is given twice"));
    }
    bound[slot] = value;
  }
  for (std::size_t slot = 0; slot < signature.num_required; ++slot) {
    if (bound[slot].has_value()) continue;
    return ErrorAtLine(line,
                       absl::StrCat("the ", base::ToAbsl(what), " '", base::ToAbsl(signature.name),
                                    "' needs ", signature.num_required, " argument(s)"));
  }
  return bound;
}

}  // namespace pagoda::text::jinja
