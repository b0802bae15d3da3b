#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

// A byte-level BPE vocabulary as a model file states it, not yet checked: MakeByteBpeTokenizer
// checks it. Plain data.
struct Vocabulary {
  // GGUF's numbers. Normal and unused tokens are spelt in the byte alphabet, the others as plain
  // text.
  enum class TokenKind : std::uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,      // never made from a caller's words
    kUserDefined = 4,  // found in any text before it is split
    kUnused = 5,
    kByte = 6,
  };

  std::string pre_tokenizer;        // names the rule that splits text before merging; see Splitter
  std::vector<std::string> tokens;  // by id
  std::vector<TokenKind> kinds;     // by id
  std::vector<std::string> merges;  // "left right", the earliest first
  std::optional<base::TokenId> bos;
  std::vector<base::TokenId> eos;  // every id that ends a reply
  bool adds_bos = false;
};

}  // namespace pagoda::text
