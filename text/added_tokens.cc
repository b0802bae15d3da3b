#include "text/added_tokens.h"

#include "base/check.h"

namespace pagoda::text {
namespace {

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kNoNode = 0;  // nothing leads back to the root

}  // namespace

AddedTokens::AddedTokens() : nodes_(1) {}

void AddedTokens::Add(std::string_view spelling, base::TokenId token, bool is_control) {
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
  nodes_[node].is_control = is_control;
  const auto first = static_cast<unsigned char>(spelling.front());
  (is_control ? control_starts_ : starts_)[first] = true;
}

std::vector<AddedTokens::Found> AddedTokens::FindAll(std::string_view text,
                                                     std::span<const Range> control_ranges) const {
  std::vector<Found> found;
  auto range = control_ranges.begin();
  for (std::size_t at = 0; at < text.size();) {
    while (range != control_ranges.end() && range->end <= at) ++range;
    const bool control = range != control_ranges.end() && range->begin <= at;
    const auto byte = static_cast<unsigned char>(text[at]);
    std::optional<Found> here;
    if (starts_[byte] || (control && control_starts_[byte])) {
      here = FindAt(text, at, control ? range->end : 0);
    }
    if (here.has_value()) found.push_back(*here);
    at = here.has_value() ? here->end : at + 1;
  }
  return found;
}

std::optional<AddedTokens::Found> AddedTokens::FindAt(std::string_view text, std::size_t begin,
                                                      std::size_t control_end) const {
  std::optional<Found> longest;
  std::uint32_t node = kRoot;
  for (std::size_t at = begin; at < text.size(); ++at) {
    node = ChildOf(node, static_cast<unsigned char>(text[at]));
    if (node == kNoNode) break;
    const Node& reached = nodes_[node];
    if (!reached.token.has_value()) continue;
    if (reached.is_control && at + 1 > control_end) continue;
    longest = Found{.begin = begin, .end = at + 1, .token = *reached.token};
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
