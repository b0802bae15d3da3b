#pragma once

#include "absl/status/statusor.h"
#include "formats/json_document.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// How a tokenizer.json of the SentencePiece family writes spaces: by a normalizer (Prepend and
// Replace) or by a Metaspace pre-tokenizer, and back by its decoder. Anything else is refused with
// what was found. Requires: the three entries are there. Errors: InvalidArgument, without the file.
absl::StatusOr<SpaceMarks> ReadSpaceMarks(const formats::JsonValue& root);

}  // namespace pagoda::text
