#include "text/added_tokens.h"

#include <algorithm>

#include "base/check.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kNoNode = 0;  // nothing leads back to the root

// Unicode's White_Space.
bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::size_t LeadingWhiteSpace(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const Utf8Unit unit = ReadUtf8(text.substr(end));
    if (!IsWhiteSpace(unit.code_point)) break;
    end += unit.length;
  }
  return end;
}

std::size_t TrailingWhiteSpace(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t at = begin - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
    if (!IsWhiteSpace(ReadUtf8(text.substr(at)).code_point)) break;
    begin = at;
  }
  return text.size() - begin;
}

}  // namespace

std::vector<AddedTokens::Range> AddedTokens::ControlRangesOf(const MarkedText& text) {
  std::vector<Range> ranges;
  std::size_t end = 0;
  for (const MarkedText::Part& part : text.parts) {
    const std::size_t begin = end;
    end += part.text.size();
    if (!part.from_input) ranges.push_back({.begin = begin, .end = end});
  }
  return ranges;
}

std::vector<AddedTokens::Range> AddedTokens::Within(std::span<const Range> ranges, Range window) {
  std::vector<Range> parts;
  auto at = std::ranges::upper_bound(ranges, window.begin, {}, &Range::end);
  for (; at != ranges.end() && at->begin < window.end; ++at) {
    parts.push_back({.begin = std::max(at->begin, window.begin) - window.begin,
                     .end = std::min(at->end, window.end) - window.begin});
  }
  return parts;
}

AddedTokens::AddedTokens() : nodes_(1) {}

void AddedTokens::Add(std::string_view spelling, base::TokenId token, Traits traits) {
  PAGODA_CHECK(!spelling.empty());
  std::uint32_t node = kRoot;
  for (const char c : spelling) {
    const auto byte = static_cast<unsigned char>(c);
    std::uint32_t child = ChildOf(node, byte);
    if (child == kNoNode) {
      child = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
      nodes_[node].children.emplace_back(byte, child);
    }
    node = child;
  }
  PAGODA_CHECK(!nodes_[node].token.has_value());
  nodes_[node].token = token;
  nodes_[node].traits = traits;
  const auto first = static_cast<unsigned char>(spelling.front());
  (traits.is_control ? control_starts_ : starts_)[first] = true;
}

std::vector<AddedTokens::Found> AddedTokens::FindAll(std::string_view text,
                                                     std::span<const Range> control_ranges) const {
  std::vector<Found> found;
  auto range = control_ranges.begin();
  for (std::size_t at = 0; at < text.size();) {
    while (range != control_ranges.end() && range->end <= at) ++range;
    const bool control = range != control_ranges.end() && range->begin <= at;
    const auto byte = static_cast<unsigned char>(text[at]);
    std::optional<Match> here;
    if (starts_[byte] || (control && control_starts_[byte])) {
      here = FindAt(text, at, control ? range->end : 0);
    }
    if (!here.has_value()) {
      ++at;
      continue;
    }
    Found& match = here->found;
    const std::size_t free_begin = found.empty() ? 0 : found.back().end;
    if (here->traits.strips_left) {
      match.begin -= TrailingWhiteSpace(text.substr(free_begin, match.begin - free_begin));
    }
    if (here->traits.strips_right) match.end += LeadingWhiteSpace(text.substr(match.end));
    found.push_back(match);
    at = match.end;
  }
  return found;
}

std::optional<AddedTokens::Match> AddedTokens::FindAt(std::string_view text, std::size_t begin,
                                                      std::size_t control_end) const {
  std::optional<Match> longest;
  std::uint32_t node = kRoot;
  for (std::size_t at = begin; at < text.size(); ++at) {
    node = ChildOf(node, static_cast<unsigned char>(text[at]));
    if (node == kNoNode) break;
    const Node& reached = nodes_[node];
    if (!reached.token.has_value()) continue;
    if (reached.traits.is_control && at + 1 > control_end) continue;
    longest = Match{{.begin = begin, .end = at + 1, .token = *reached.token}, reached.traits};
  }
  return longest;
}

std::uint32_t AddedTokens::ChildOf(std::uint32_t node, unsigned char byte) const {
  for (const auto& [label, child] : nodes_[node].children) {
    if (label == byte) return child;
  }
  return kNoNode;
}

}  // namespace pagoda::text
