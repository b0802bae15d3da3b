#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// The tokenizer of the vocabulary's own family. Errors (InvalidArgument): as
// MakeSentencePieceTokenizer with space marks, as MakeByteBpeTokenizer without.
absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeTokenizer(const Vocabulary& vocabulary);

}  // namespace pagoda::text
