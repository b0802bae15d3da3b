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
  // text. An unused one may be empty: an id that no token has.
  enum class TokenKind : std::uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,      // never made from a caller's words
    kUserDefined = 4,  // found in any text before it is split
    kUnused = 5,
    kByte = 6,
  };

  enum class Normalizer : std::uint8_t { kNone, kNfc };
  // What sets a control or user-defined token apart from one that is found just as it is spelt.
  struct Finding {
    base::TokenId token = 0;
    bool strips_left = false, strips_right = false;  // takes the white space on that side with it
    bool normalized = false;  // looked for in normalised text, after all those that are not
  };

  std::string pre_tokenizer;        // names the rule that splits text before merging; see Splitter
  std::vector<std::string> tokens;  // by id
  std::vector<TokenKind> kinds;     // by id
  std::vector<std::string> merges;  // "left right", the earliest first
  std::optional<base::TokenId> bos;
  std::vector<base::TokenId> eos;  // every id that ends a reply
  bool adds_bos = false;
  bool ignores_merges = false;  // a piece that is a token becomes it, whatever merging would make
  Normalizer normalizer = Normalizer::kNone;
  std::vector<Finding> findings = {};  // of the tokens that need one
};

}  // namespace pagoda::text
