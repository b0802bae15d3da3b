#pragma once

#include <string>
#include <vector>

namespace pagoda::text {

// Text that remembers where each part came from: a template's own words may be control tokens, what
// a caller sent never is.
struct MarkedText {
  struct Part {
    std::string text;
    bool from_input = false;  // true: caller's words, tokenised as plain text
  };
  std::vector<Part> parts;  // neighbours differ in from_input

  std::string Joined() const {
    std::string all;
    for (const Part& part : parts) all += part.text;
    return all;
  }
};

}  // namespace pagoda::text
