#pragma once

#include <optional>
#include <string>

#include "text/vocabulary.h"

namespace pagoda::text {

// Reads the line form in which tests/oracle writes vocabularies: "pre NAME", "bos ID", "eos ID",
// "token KIND SPELLING", "merge LEFT RIGHT", one a line. Nothing when the file cannot be read.
std::optional<Vocabulary> ReadVocabularyFile(const std::string& path);

// The small vocabulary that the goldens were made with.
Vocabulary FixtureVocabulary();

}  // namespace pagoda::text
