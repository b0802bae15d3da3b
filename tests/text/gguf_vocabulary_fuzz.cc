// libFuzzer entry: any GGUF file at all is either refused or gives a tokenizer that cuts texts into
// ids of its own vocabulary, whose bytes can be read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "formats/gguf.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::text::Tokenizer;
  const auto file = pagoda::formats::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) return 0;
  const auto tokenizer = Tokenizer::FromGguf(**file, std::nullopt);
  if (!tokenizer.ok()) return 0;
  std::size_t sum = 0;
  for (const std::string_view words : {"ab a1 cab", "<s> <x>ab<x> ", "\xc3\xa9 12\n\n"}) {
    const auto ids = (*tokenizer)->Encode(words, Tokenizer::Specials::kControl);
    if (!ids.ok()) continue;
    PAGODA_CHECK(ids->size() <= (*tokenizer)->MaxTokens(words.size()));
    for (const pagoda::base::TokenId id : *ids) {
      PAGODA_CHECK(id < (*tokenizer)->vocabulary_size());
      sum += (*tokenizer)->Bytes(id).size();
    }
  }
  return sum == SIZE_MAX ? 1 : 0;
}
