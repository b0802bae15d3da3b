#include "text/jinja/token_stream.h"

#include "text/jinja/template_error.h"

namespace pagoda::text::jinja {
namespace {

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kData:
      return "text";
    case Token::Kind::kVariableBegin:
      return "'{{'";
    case Token::Kind::kVariableEnd:
      return "'}}'";
    case Token::Kind::kBlockBegin:
      return "'{%'";
    case Token::Kind::kBlockEnd:
      return "'%}'";
    case Token::Kind::kString:
      return "a string";
    case Token::Kind::kName:
    case Token::Kind::kInteger:
    case Token::Kind::kOperator:
      return absl::StrCat("'", token.text, "'");
    case Token::Kind::kEnd:
      return "the end of the template";
  }
  return "nothing";
}

}  // namespace

absl::Status TokenStream::Unexpected(std::string_view wanted) const {
  return ErrorAtLine(
      line(), absl::StrCat("found ", Describe(current()), ", expected ", base::ToAbsl(wanted)));
}

}  // namespace pagoda::text::jinja
