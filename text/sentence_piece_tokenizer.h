#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// A tokenizer over a SentencePiece vocabulary of the BPE kind: spaces are marked, characters are
// merged by score or by rank, and what has no token becomes the tokens of its bytes. Time: n log n
// in the length of a text. Errors (InvalidArgument) name the token, byte or merge at fault: kinds
// or scores that do not match the tokens, an empty or duplicate token, one too long to be merged, a
// byte without a token, a score that is no number, a merge of or into unknown tokens, special ids
// out of range. Requires: vocabulary.space_marks.
absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeSentencePieceTokenizer(
    const Vocabulary& vocabulary);

}  // namespace pagoda::text
