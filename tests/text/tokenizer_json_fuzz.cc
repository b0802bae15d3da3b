// libFuzzer entry: any tokenizer.json at all is either refused or gives a tokenizer that cuts texts
// into ids of its own vocabulary, the same each time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/json_document.h"
#include "text/make_tokenizer.h"
#include "text/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::text::Tokenizer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = pagoda::formats::JsonDocument::Parse(text, "fuzz");
  if (!document.ok()) return 0;
  const auto vocabulary = pagoda::text::ReadTokenizerJson(**document);
  if (!vocabulary.ok()) return 0;
  const auto tokenizer = pagoda::text::MakeTokenizer(*vocabulary);
  if (!tokenizer.ok()) return 0;
  for (const std::string_view words : {"ab a1 cab", "<s> <x>ab<x> ", "\xc3\xa9 12\n\n"}) {
    const auto ids = (*tokenizer)->Encode(words, Tokenizer::Specials::kControl);
    const auto again = (*tokenizer)->Encode(words, Tokenizer::Specials::kControl);
    PAGODA_CHECK(ids.ok() == again.ok());
    if (!ids.ok()) continue;
    PAGODA_CHECK(ids->size() <= (*tokenizer)->MaxTokens(words.size()));
    PAGODA_CHECK(*ids == *again);
    for (const pagoda::base::TokenId id : *ids) {
      PAGODA_CHECK(id < (*tokenizer)->vocabulary_size());
    }
  }
  return 0;
}
