#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::text::jinja {

// A piece of template source. Text between tags is one kData token, already trimmed.
struct Token {
  enum class Kind : std::uint8_t {
    kData,
    kVariableBegin,  // {{
    kVariableEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,    // `text` is the decoded value
    kInteger,   // `integer` is the value
    kOperator,  // `text` is the operator
    kEnd,       // the last token of every list
  };
  Kind kind = Kind::kEnd;
  std::uint32_t line = 0;  // from 1
  std::string text;
  std::int64_t integer = 0;

  bool Is(Kind wanted, std::string_view wanted_text) const {
    return kind == wanted && text == wanted_text;
  }
};

// Cuts a template into tokens as Jinja does with trim_blocks and lstrip_blocks on: the newline
// after a block or comment tag goes, and so does the blank space before one that starts its line;
// `-` strips all blank space on its side, `+` keeps it. One newline at the very end of the source
// is dropped. Errors: InvalidArgument with the line.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace pagoda::text::jinja
