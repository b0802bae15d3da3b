#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pagoda::text {

// Cuts text into the pieces that BPE merges inside, by a model's own rule (its pre-tokenizer). The
// pieces, joined, are the text. Letters and numbers are those of Unicode 16, whatever older version
// the regular expression library knows. Time is linear in the length for every rule here. Const
// after Create; threads: any.
class Splitter {
 public:
  // Errors: InvalidArgument for an unknown name; the message lists the known ones.
  static absl::StatusOr<std::unique_ptr<const Splitter>> Create(std::string_view pre_tokenizer);
  virtual ~Splitter() = default;

  // Appends the pieces of `text` to `pieces`; they are views of it. Requires: valid UTF-8.
  // Errors: ResourceExhausted when the expression's own limits are met.
  virtual absl::Status Split(std::string_view text,
                             std::vector<std::string_view>& pieces) const = 0;
};

}  // namespace pagoda::text
