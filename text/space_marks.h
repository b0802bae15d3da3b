#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"

namespace pagoda::text {

// SentencePiece's spelling of spaces: each is the character U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// `text` with a mark in the place of each space.
std::string MarkSpaces(std::string_view text);
// `spelling` with a space in the place of each mark.
std::string UnmarkSpaces(std::string_view spelling);

// A stretch of text with its spaces marked, and where in it control tokens may be.
struct MarkedStretch {
  std::string text;
  std::vector<AddedTokens::Range> control_ranges;
};

// `control_ranges` are in order, do not overlap, and lie in `stretch`; `prefix` comes before it. A
// range takes a mark before it in: control tokens are spelt with one, whoever wrote the space.
MarkedStretch MarkStretch(std::string_view prefix, std::string_view stretch,
                          std::span<const AddedTokens::Range> control_ranges);

}  // namespace pagoda::text
