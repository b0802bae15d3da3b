#pragma once

#include "absl/status/statusor.h"
#include "formats/json_document.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// The vocabulary of a tokenizer.json with BPE, byte-level or, with `byte_fallback`,
// SentencePiece's, not yet checked as one. Every entry that changes ids is honoured, or refused:
// InvalidArgument with the file, the entry, and what is known here. EOS ids are not in such a file;
// BOS is there only when it is to be added.
absl::StatusOr<Vocabulary> ReadTokenizerJson(const formats::JsonDocument& file);

}  // namespace pagoda::text
