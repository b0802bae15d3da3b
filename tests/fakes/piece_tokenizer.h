#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "text/tokenizer.h"

namespace pagoda::fakes {

// A vocabulary written out in a test: token i stands for pieces[i]. The ids in `control` are
// control tokens. Encode takes the longest piece at each place, so it is a real, if naive,
// tokenizer. Threads: const after construction.
class PieceTokenizer final : public text::Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces, std::vector<base::TokenId> control = {})
      : pieces_(std::move(pieces)), control_(std::move(control)) {}

  absl::StatusOr<std::vector<base::TokenId>> Encode(std::string_view text,
                                                    Specials specials) const override {
    std::vector<base::TokenId> ids;
    while (!text.empty()) {
      const std::optional<base::TokenId> id = LongestPiece(text, specials);
      if (!id.has_value()) return absl::InvalidArgumentError("no piece fits the text");
      ids.push_back(*id);
      text.remove_prefix(pieces_[*id].size());
    }
    return ids;
  }

  absl::StatusOr<std::vector<base::TokenId>> EncodeMarked(
      const text::MarkedText& text) const override {
    std::vector<base::TokenId> ids;
    for (const text::MarkedText::Part& part : text.parts) {
      const auto encoded =
          Encode(part.text, part.from_input ? Specials::kPlain : Specials::kControl);
      if (!encoded.ok()) return encoded.status();
      ids.insert(ids.end(), encoded->begin(), encoded->end());
    }
    return ids;
  }

  std::string_view Bytes(base::TokenId id) const override {
    PAGODA_CHECK(id < pieces_.size());
    return pieces_[id];
  }
  bool IsControl(base::TokenId id) const override {
    return std::find(control_.begin(), control_.end(), id) != control_.end();
  }
  std::uint32_t vocabulary_size() const override {
    return static_cast<std::uint32_t>(pieces_.size());
  }
  std::vector<base::TokenId> eos_tokens() const override { return {}; }
  std::optional<base::TokenId> bos_token() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }

 private:
  std::optional<base::TokenId> LongestPiece(std::string_view text, Specials specials) const {
    std::optional<base::TokenId> best;
    for (base::TokenId id = 0; id < pieces_.size(); ++id) {
      if (pieces_[id].empty() || !text.starts_with(pieces_[id])) continue;
      if (specials == Specials::kPlain && IsControl(id)) continue;
      if (!best.has_value() || pieces_[id].size() > pieces_[*best].size()) best = id;
    }
    return best;
  }

  std::vector<std::string> pieces_;
  std::vector<base::TokenId> control_;
};

}  // namespace pagoda::fakes
