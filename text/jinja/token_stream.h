#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/strings.h"
#include "text/jinja/lexer.h"

namespace pagoda::text::jinja {

// The tokens of a template and the place the parser has reached. The last token is kEnd and is
// never passed.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    PAGODA_CHECK(!tokens_.empty());
    PAGODA_CHECK(tokens_.back().kind == Token::Kind::kEnd);
  }

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  std::uint32_t line() const { return current().line; }
  void Advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }

  bool AtOperator(std::string_view op) const { return current().Is(Token::Kind::kOperator, op); }
  bool AtWord(std::string_view word) const { return current().Is(Token::Kind::kName, word); }
  bool TryOperator(std::string_view op) { return AtOperator(op) && (Advance(), true); }
  bool TryWord(std::string_view word) { return AtWord(word) && (Advance(), true); }

  absl::Status ExpectOperator(std::string_view op) {
    return TryOperator(op) ? absl::OkStatus()
                           : Unexpected(absl::StrCat("'", base::ToAbsl(op), "'"));
  }
  absl::Status Expect(Token::Kind kind, std::string_view name) {
    if (current().kind != kind) return Unexpected(name);
    Advance();
    return absl::OkStatus();
  }
  // An error that names what was found and what was wanted here.
  absl::Status Unexpected(std::string_view wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace pagoda::text::jinja
