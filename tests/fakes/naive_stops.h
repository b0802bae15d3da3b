#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stop_condition.h"

namespace pagoda::fakes {

// Stop strings found the slow way: a state is an index into every text seen so far. Token i stands
// for pieces[i]. Threads: one at a time.
class NaiveStops final : public base::StopCondition {
 public:
  NaiveStops(std::vector<std::string> stops, std::vector<std::string> pieces)
      : stops_(std::move(stops)), pieces_(std::move(pieces)) {}

  base::StopStep Advance(std::uint32_t state, base::TokenId token) const override {
    const std::string& piece = pieces_[token];
    std::string text = texts_[state];
    base::StopStep step{.token_bytes = static_cast<std::uint32_t>(piece.size())};
    for (std::size_t i = 0; i < piece.size(); ++i) {
      text += piece[i];
      if (step.matched_stop < 0) NoteMatch(text, i + 1, step);
    }
    for (const std::string& stop : stops_) {
      for (std::size_t n = 1; n < stop.size(); ++n) {
        if (text.ends_with(stop.substr(0, n))) {
          step.held_bytes = std::max(step.held_bytes, static_cast<std::uint32_t>(n));
        }
      }
    }
    texts_.push_back(std::move(text));
    step.next_state = static_cast<std::uint32_t>(texts_.size() - 1);
    return step;
  }

 private:
  void NoteMatch(std::string_view text, std::size_t end_in_token, base::StopStep& step) const {
    for (std::size_t s = 0; s < stops_.size(); ++s) {
      if (text.ends_with(stops_[s]) && stops_[s].size() > step.match_length) {
        step.matched_stop = static_cast<std::int32_t>(s);
        step.match_end = static_cast<std::uint32_t>(end_in_token);
        step.match_length = static_cast<std::uint32_t>(stops_[s].size());
      }
    }
  }

  std::vector<std::string> stops_;
  std::vector<std::string> pieces_;
  mutable std::vector<std::string> texts_ = {""};
};

}  // namespace pagoda::fakes
