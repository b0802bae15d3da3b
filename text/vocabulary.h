#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

// How spaces are written: each as U+2581, and one more before a stretch of text between added
// tokens, so that its first word is spelt as any other.
struct SpaceMarks {
  enum class Prefix : std::uint8_t {
    kNone,
    kFirst,  // the stretch that begins the text
    kEach,
  };
  Prefix prefix = Prefix::kEach;
  // A normalizer puts its mark before a stretch whatever that begins with, and before the tokens
  // that are looked for in normalised text are, which it changes in the same way. Otherwise these
  // are found first, as they are spelt, and no mark is put where one is.
  bool is_normalizer = true;
  bool strips_first_space = true;  // of the text that tokens stand for
};

// A BPE vocabulary as a model file states it, not yet checked: MakeTokenizer checks it. Plain data.
// With space marks it is SentencePiece's way of writing, without them byte-level.
struct Vocabulary {
  // GGUF's numbers. In a byte-level vocabulary normal and unused tokens are spelt in the byte
  // alphabet and the others as plain text; with space marks all are text, but for byte tokens,
  // which are spelt "<0x41>". An unused one may be empty: an id that no token has.
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

  // Names the rule that splits text before merging; see Splitter. Not with space marks.
  std::string pre_tokenizer;
  std::vector<std::string> tokens;  // by id
  std::vector<TokenKind> kinds;     // by id
  std::vector<std::string> merges;  // "left right", the earliest first
  // By id, in the place of merges: two neighbours become the token that both spell, the one of the
  // highest score first. Only with space marks.
  std::vector<float> scores = {};
  std::optional<base::TokenId> bos;
  std::vector<base::TokenId> eos;  // every id that ends a reply
  bool adds_bos = false;
  bool ignores_merges = false;  // a piece that is a token becomes it, whatever merging would make
  Normalizer normalizer = Normalizer::kNone;
  std::optional<SpaceMarks> space_marks = {};
  std::vector<Finding> findings = {};  // of the tokens that need one
};

}  // namespace pagoda::text
