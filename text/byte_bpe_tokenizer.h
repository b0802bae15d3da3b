#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// A tokenizer over a byte-level BPE vocabulary. Errors (InvalidArgument) name the token, merge or
// id at fault: an unknown pre-tokenizer, kinds that do not match the tokens, an empty or duplicate
// token, a spelling outside the byte alphabet, a merge of or into unknown tokens, a duplicate
// merge, special ids out of range, a BOS to add that is not there.
absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeByteBpeTokenizer(const Vocabulary& vocabulary);

}  // namespace pagoda::text
