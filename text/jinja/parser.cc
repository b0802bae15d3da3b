#include "text/jinja/parser.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/template_error.h"

namespace pagoda::text::jinja {
namespace {

using Kind = Token::Kind;
using EndWords = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : expressions_(std::move(tokens)), stream_(expressions_.stream()) {}

  absl::StatusOr<SyntaxTree> Run() {
    PAGODA_ASSIGN_OR_RETURN(Body body, ParseBody({}));
    SyntaxTree& tree = expressions_.tree();
    tree.body = std::move(body);
    tree.loop_name = expressions_.Intern("loop");
    return std::move(tree);
  }

 private:
  template <typename Node>
  StatementId Add(std::uint32_t line, Node node) {
    auto& statements = expressions_.tree().statements;
    statements.push_back({line, std::move(node)});
    return StatementId(static_cast<std::uint32_t>(statements.size() - 1));
  }

  // Up to a tag whose word is one of `ends`, which stays current, past its `{%`. Without `ends`: up
  // to the end.
  absl::StatusOr<Body> ParseBody(EndWords ends) {
    Body body;
    while (stream_.current().kind != Kind::kEnd) {
      if (AtOneOf(ends)) {
        stream_.Advance();
        return body;
      }
      PAGODA_ASSIGN_OR_RETURN(const StatementId statement, ParseStatement());
      body.push_back(statement);
    }
    if (ends.size() == 0) return body;
    return stream_.Unexpected(absl::StrCat("the tag '", base::ToAbsl(*(ends.end() - 1)), "'"));
  }

  bool AtOneOf(EndWords ends) const {
    if (stream_.current().kind != Kind::kBlockBegin) return false;
    for (const std::string_view word : ends) {
      if (stream_.following().Is(Kind::kName, word)) return true;
    }
    return false;
  }

  absl::StatusOr<StatementId> ParseStatement() {
    const std::uint32_t line = stream_.line();
    switch (stream_.current().kind) {
      case Kind::kData: {
        TextStatement text{stream_.current().text};
        stream_.Advance();
        return Add(line, std::move(text));
      }
      case Kind::kVariableBegin: {
        stream_.Advance();
        PAGODA_ASSIGN_OR_RETURN(const ExpressionId value, ParseWhole(true));
        PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kVariableEnd, "'}}'"));
        return Add(line, OutputStatement{value});
      }
      default:
        PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kBlockBegin, "a tag"));
        return ParseTag(line);
    }
  }

  // An expression that a whole tag is about: there a comma would make a tuple.
  absl::StatusOr<ExpressionId> ParseWhole(bool with_conditional) {
    PAGODA_ASSIGN_OR_RETURN(const ExpressionId value, with_conditional
                                                          ? expressions_.ParseConditional()
                                                          : expressions_.ParseOr());
    if (stream_.AtOperator(",")) return NotSupported(stream_.line(), "a tuple");
    return value;
  }

  absl::StatusOr<StatementId> ParseTag(std::uint32_t line) {
    const ExpressionParser::Nested nested(expressions_);
    PAGODA_RETURN_IF_ERROR(nested.Check());
    const std::string word = stream_.current().text;
    PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kName, "the name of a tag"));
    if (word == "for") return ParseFor(line);
    if (word == "if") return ParseIf(line);
    if (word == "set") return ParseSet(line);
    if (word == "elif" || word == "else" || word.starts_with("end")) {
      return ErrorAtLine(line, absl::StrCat("the tag '", word, "' closes nothing that is open"));
    }
    return NotSupported(line, absl::StrCat("the tag '", word, "'"));
  }

  absl::Status ExpectTagEnd() { return stream_.Expect(Kind::kBlockEnd, "'%}'"); }

  absl::StatusOr<NameId> ParseTarget() {
    const Token token = stream_.current();
    PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kName, "the name of a variable"));
    static constexpr std::array<std::string_view, 6> kLiterals = {"true",  "True", "false",
                                                                  "False", "none", "None"};
    for (const std::string_view literal : kLiterals) {
      if (token.text == literal) {
        return ErrorAtLine(token.line, absl::StrCat("'", token.text, "' cannot be assigned to"));
      }
    }
    return expressions_.Intern(token.text);
  }

  absl::Status ParseTargets(std::vector<NameId>& targets) {
    do {
      if (stream_.AtOperator("(")) {
        return NotSupported(stream_.line(), "a bracket around a loop's variables");
      }
      if (stream_.AtWord("loop")) {
        return ErrorAtLine(stream_.line(), "'loop' cannot be a loop's variable");
      }
      PAGODA_ASSIGN_OR_RETURN(const NameId target, ParseTarget());
      targets.push_back(target);
    } while (stream_.TryOperator(","));
    return absl::OkStatus();
  }

  absl::StatusOr<StatementId> ParseFor(std::uint32_t line) {
    ForStatement node;
    PAGODA_RETURN_IF_ERROR(ParseTargets(node.targets));
    if (!stream_.TryWord("in")) return stream_.Unexpected("'in'");
    PAGODA_ASSIGN_OR_RETURN(node.iterable, ParseWhole(false));
    if (stream_.TryWord("if")) {
      PAGODA_ASSIGN_OR_RETURN(node.condition, ParseWhole(true));
    }
    if (stream_.AtWord("recursive"))
      return NotSupported(stream_.line(), "'recursive' in a 'for' tag");
    PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
    PAGODA_ASSIGN_OR_RETURN(node.body, ParseBody({"else", "endfor"}));
    if (stream_.TryWord("else")) {
      PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
      PAGODA_ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endfor"}));
    }
    stream_.Advance();
    PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
    return Add(line, std::move(node));
  }

  absl::StatusOr<StatementId> ParseIf(std::uint32_t line) {
    IfStatement node;
    do {
      IfStatement::Branch branch;
      PAGODA_ASSIGN_OR_RETURN(branch.condition, ParseWhole(false));
      PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
      PAGODA_ASSIGN_OR_RETURN(branch.body, ParseBody({"elif", "else", "endif"}));
      node.branches.push_back(std::move(branch));
    } while (stream_.TryWord("elif"));
    if (stream_.TryWord("else")) {
      PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
      PAGODA_ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endif"}));
    }
    stream_.Advance();
    PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
    return Add(line, std::move(node));
  }

  absl::StatusOr<StatementId> ParseSet(std::uint32_t line) {
    SetStatement node;
    PAGODA_ASSIGN_OR_RETURN(node.name, ParseTarget());
    if (stream_.AtOperator(",")) {
      return NotSupported(line, "unpacking into several variables with 'set'");
    }
    if (stream_.TryOperator(".")) {
      node.attribute = stream_.current().text;
      PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kName, "the name of an attribute"));
    }
    if (stream_.current().kind == Kind::kBlockEnd || stream_.AtOperator("|")) {
      return NotSupported(line, "a 'set' tag with a body");
    }
    PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator("="));
    PAGODA_ASSIGN_OR_RETURN(node.value, ParseWhole(true));
    PAGODA_RETURN_IF_ERROR(ExpectTagEnd());
    return Add(line, std::move(node));
  }

  ExpressionParser expressions_;
  TokenStream& stream_;
};

}  // namespace

absl::StatusOr<SyntaxTree> ParseTemplate(std::string_view source) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return StatementParser(std::move(tokens)).Run();
}

}  // namespace pagoda::text::jinja
