#pragma once

#include <string>

#include "absl/status/status.h"
#include "formats/json_document.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// Adds what a tokenizer_config.json says to the vocabulary of the tokenizer.json beside it: its BOS
// and EOS tokens. Its chat template, if it has one, goes to `chat_template`. Errors:
// InvalidArgument with the file and the entry, for what is not built and for what contradicts the
// vocabulary.
absl::Status ReadTokenizerConfig(const formats::JsonDocument& file, Vocabulary& vocabulary,
                                 std::string& chat_template);

}  // namespace pagoda::text
