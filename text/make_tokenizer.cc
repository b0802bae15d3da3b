#include "text/make_tokenizer.h"

#include "text/byte_bpe_tokenizer.h"
#include "text/sentence_piece_tokenizer.h"

namespace pagoda::text {

absl::StatusOr<std::unique_ptr<const Tokenizer>> MakeTokenizer(const Vocabulary& vocabulary) {
  return vocabulary.space_marks.has_value() ? MakeSentencePieceTokenizer(vocabulary)
                                            : MakeByteBpeTokenizer(vocabulary);
}

}  // namespace pagoda::text
