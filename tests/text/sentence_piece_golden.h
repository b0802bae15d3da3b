#pragma once

#include <span>
#include <string>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace pagoda::text {

// The text of `ids`, as a text of its own.
std::string TextOf(const Tokenizer& tokenizer, std::span<const base::TokenId> ids);

// Compares the ids of strings, and the text of these, with the answers of the oracle in
// sentence_piece_FORM.bin, made by tests/oracle/make_sentence_piece_goldens.py.
void CompareWithSentencePieceGolden(const Tokenizer& tokenizer, const std::string& form);

}  // namespace pagoda::text
