#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "text/marked_text.h"

namespace pagoda::text {

// Tokens that are found in text before it is split: control tokens, only where they are allowed,
// and user-defined ones, anywhere. Of several the leftmost wins, then the longest. Filled by its
// owner, then const; threads: any.
class AddedTokens {
 public:
  struct Range {
    std::size_t begin = 0, end = 0;  // bytes
  };
  // The template's own parts of `text`, as ranges of the joined text.
  static std::vector<Range> ControlRangesOf(const MarkedText& text);
  // The parts of `ranges` inside `window`, counted from its begin.
  static std::vector<Range> Within(std::span<const Range> ranges, Range window);

  struct Found {
    std::size_t begin = 0, end = 0;  // bytes
    base::TokenId token = 0;
  };

  struct Traits {
    bool is_control = false;
    bool strips_left = false, strips_right = false;  // the white space beside it goes with it
  };

  AddedTokens();
  // Requires: not empty, not added yet.
  void Add(std::string_view spelling, base::TokenId token, Traits traits);
  bool empty() const { return nodes_.size() == 1; }

  // All of them in `text`, in order, without overlap. A control token counts only where it lies
  // wholly inside one of `control_ranges`, which are in order and do not overlap. White space that
  // a token takes with it may lie outside.
  std::vector<Found> FindAll(std::string_view text, std::span<const Range> control_ranges) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> children;
    std::optional<base::TokenId> token;
    Traits traits;
  };
  struct Match {
    Found found;
    Traits traits;
  };

  std::uint32_t ChildOf(std::uint32_t node, unsigned char byte) const;
  // The longest token that starts at `begin`; a control token must end at or before `control_end`.
  std::optional<Match> FindAt(std::string_view text, std::size_t begin,
                              std::size_t control_end) const;

  std::vector<Node> nodes_;         // a trie; 0 is the root
  std::array<bool, 256> starts_{};  // first bytes of user-defined tokens
  std::array<bool, 256> control_starts_{};
};

}  // namespace pagoda::text
