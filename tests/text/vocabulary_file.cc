#include "tests/text/vocabulary_file.h"

#include <fstream>
#include <utility>

#include "base/check.h"

namespace pagoda::text {

std::optional<Vocabulary> ReadVocabularyFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  Vocabulary vocabulary;
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t space = line.find(' ');
    const std::string key = line.substr(0, space);
    const std::string value = line.substr(space + 1);
    if (key == "pre") vocabulary.pre_tokenizer = value;
    if (key == "bos") vocabulary.bos = static_cast<base::TokenId>(std::stoul(value));
    if (key == "eos") vocabulary.eos.push_back(static_cast<base::TokenId>(std::stoul(value)));
    if (key == "merge") vocabulary.merges.push_back(value);
    if (key != "token") continue;
    vocabulary.kinds.push_back(static_cast<Vocabulary::TokenKind>(value[0] - '0'));
    vocabulary.tokens.push_back(value.substr(2));
  }
  return vocabulary;
}

Vocabulary FixtureVocabulary() {
  std::optional<Vocabulary> vocabulary =
      ReadVocabularyFile(PAGODA_SOURCE_DIR "/tests/fixtures/vocabulary_2k.txt");
  PAGODA_CHECK_MSG(vocabulary.has_value(), "tests/fixtures/vocabulary_2k.txt is missing");
  return *std::move(vocabulary);
}

}  // namespace pagoda::text
