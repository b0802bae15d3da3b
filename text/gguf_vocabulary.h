#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "formats/gguf.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// The vocabulary of a GGUF file, copied. Every `tokenizer.` entry that changes ids is read or the
// file is refused: InvalidArgument for an entry missing, of a wrong type, asking for what is not
// built, or unknown. `pre_tokenizer`, when given, stands for what the file names.
absl::StatusOr<Vocabulary> ReadGgufVocabulary(const formats::GgufFile& file,
                                              std::optional<std::string_view> pre_tokenizer);

}  // namespace pagoda::text
