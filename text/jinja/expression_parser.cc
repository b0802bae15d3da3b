#include "text/jinja/expression_parser.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/argument_binding.h"
#include "text/jinja/template_error.h"

namespace pagoda::text::jinja {
namespace {

using Kind = Token::Kind;

}  // namespace

absl::Status ExpressionParser::Nested::Check() const {
  if (parser_.depth_ <= kMaxNestingDepth) return absl::OkStatus();
  return ErrorAtLine(parser_.stream_.line(),
                     absl::StrCat("nested deeper than kMaxNestingDepth = ", kMaxNestingDepth));
}

NameId ExpressionParser::Intern(const std::string& name) {
  const auto [entry, added] =
      name_ids_.try_emplace(name, NameId(static_cast<std::uint32_t>(tree_.names.size())));
  if (added) tree_.names.push_back(name);
  return entry->second;
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseConditional() {
  const Nested nested(*this);
  PAGODA_RETURN_IF_ERROR(nested.Check());
  const std::uint32_t line = stream_.line();
  PAGODA_ASSIGN_OR_RETURN(const Id then, ParseOr());
  if (!stream_.TryWord("if")) return then;
  PAGODA_ASSIGN_OR_RETURN(const Id condition, ParseOr());
  Conditional node{condition, then, std::nullopt};
  if (stream_.TryWord("else")) {
    PAGODA_ASSIGN_OR_RETURN(node.otherwise, ParseConditional());
  }
  return Add(line, node);
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseLogical(bool is_and) {
  const std::uint32_t line = stream_.line();
  Logical node{is_and, {}};
  do {
    PAGODA_ASSIGN_OR_RETURN(const Id operand, is_and ? ParseNot() : ParseLogical(true));
    node.operands.push_back(operand);
  } while (stream_.TryWord(is_and ? "and" : "or"));
  return node.operands.size() == 1 ? node.operands[0] : Add(line, std::move(node));
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseNot() {
  const std::uint32_t line = stream_.line();
  if (!stream_.TryWord("not")) return ParseComparison();
  const Nested nested(*this);
  PAGODA_RETURN_IF_ERROR(nested.Check());
  PAGODA_ASSIGN_OR_RETURN(const Id operand, ParseNot());
  return Add(line, Unary{UnaryOperator::kNot, operand});
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseComparison() {
  const std::uint32_t line = stream_.line();
  PAGODA_ASSIGN_OR_RETURN(const Id first, ParseArithmetic(true));
  Comparison node{first, {}};
  while (const std::optional<ComparisonOperator> op = TryComparisonOperator()) {
    PAGODA_ASSIGN_OR_RETURN(const Id operand, ParseArithmetic(true));
    node.rest.emplace_back(*op, operand);
  }
  return node.rest.empty() ? first : Add(line, std::move(node));
}

std::optional<ComparisonOperator> ExpressionParser::TryComparisonOperator() {
  using Op = ComparisonOperator;
  static constexpr std::pair<std::string_view, Op> kOperators[] = {
      {"==", Op::kEqual},     {"!=", Op::kNotEqual}, {"<", Op::kLess},
      {"<=", Op::kLessEqual}, {">", Op::kGreater},   {">=", Op::kGreaterEqual}};
  for (const auto& [text, op] : kOperators) {
    if (stream_.TryOperator(text)) return op;
  }
  if (stream_.TryWord("in")) return Op::kIn;
  if (stream_.AtWord("not") && stream_.following().Is(Kind::kName, "in")) {
    stream_.Advance();
    stream_.Advance();
    return Op::kNotIn;
  }
  return std::nullopt;
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseArithmetic(bool is_sum) {
  const std::uint32_t line = stream_.line();
  const auto operand = [&] { return is_sum ? ParseConcatenation() : ParsePower(); };
  PAGODA_ASSIGN_OR_RETURN(const Id first, operand());
  Arithmetic node{first, {}};
  while (true) {
    PAGODA_ASSIGN_OR_RETURN(const std::optional<ArithmeticOperator> op,
                            TryArithmeticOperator(is_sum));
    if (!op.has_value()) break;
    PAGODA_ASSIGN_OR_RETURN(const Id next, operand());
    node.rest.emplace_back(*op, next);
  }
  return node.rest.empty() ? first : Add(line, std::move(node));
}

absl::StatusOr<std::optional<ArithmeticOperator>> ExpressionParser::TryArithmeticOperator(
    bool is_sum) {
  using Op = ArithmeticOperator;
  if (is_sum) {
    if (stream_.TryOperator("+")) return Op::kAdd;
    if (stream_.TryOperator("-")) return Op::kSubtract;
    return std::nullopt;
  }
  if (stream_.AtOperator("/")) return NotSupported(stream_.line(), "the operator '/'");
  if (stream_.TryOperator("*")) return Op::kMultiply;
  if (stream_.TryOperator("//")) return Op::kFloorDivide;
  if (stream_.TryOperator("%")) return Op::kModulo;
  return std::nullopt;
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseConcatenation() {
  const std::uint32_t line = stream_.line();
  Concatenation node;
  do {
    PAGODA_ASSIGN_OR_RETURN(const Id part, ParseArithmetic(false));
    node.parts.push_back(part);
  } while (stream_.TryOperator("~"));
  return node.parts.size() == 1 ? node.parts[0] : Add(line, std::move(node));
}

absl::StatusOr<ExpressionId> ExpressionParser::ParsePower() {
  PAGODA_ASSIGN_OR_RETURN(const Id base, ParseUnary(true));
  if (stream_.AtOperator("**")) return NotSupported(stream_.line(), "the operator '**'");
  return base;
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseUnary(bool with_filters) {
  const Nested nested(*this);
  PAGODA_RETURN_IF_ERROR(nested.Check());
  const std::uint32_t line = stream_.line();
  const bool is_minus = stream_.AtOperator("-");
  Id first;
  if (is_minus || stream_.AtOperator("+")) {
    stream_.Advance();
    PAGODA_ASSIGN_OR_RETURN(const Id operand, ParseUnary(false));
    first = Add(line, Unary{is_minus ? UnaryOperator::kMinus : UnaryOperator::kPlus, operand});
  } else {
    PAGODA_ASSIGN_OR_RETURN(first, ParsePrimary());
  }
  Chain chain{first, {}};
  PAGODA_RETURN_IF_ERROR(ParsePostfix(chain.links));
  if (with_filters) PAGODA_RETURN_IF_ERROR(ParseFilters(chain.links));
  return chain.links.empty() ? first : Add(line, std::move(chain));
}

absl::StatusOr<ExpressionId> ExpressionParser::ParsePrimary() {
  const Token& token = stream_.current();
  switch (token.kind) {
    case Kind::kName:
      return ParseName();
    case Kind::kString:
      return ParseString();
    case Kind::kInteger: {
      const Id literal = Add(token.line, Literal{token.integer});
      stream_.Advance();
      return literal;
    }
    case Kind::kOperator:
      if (token.text == "(") return ParseParentheses();
      if (token.text == "[") return ParseList();
      if (token.text == "{") return ParseDict();
      break;
    default:
      break;
  }
  return stream_.Unexpected("an expression");
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseString() {
  const std::uint32_t line = stream_.line();
  std::string value;
  for (; stream_.current().kind == Kind::kString; stream_.Advance())
    value += stream_.current().text;
  return Add(line, Literal{MarkedString::FromTemplate(value)});
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseName() {
  const std::uint32_t line = stream_.line();
  const std::string name = stream_.current().text;
  stream_.Advance();
  if (name == "true" || name == "True") return Add(line, Literal{true});
  if (name == "false" || name == "False") return Add(line, Literal{false});
  if (name == "none" || name == "None") return Add(line, Literal{NoneLiteral{}});
  if (stream_.AtOperator("(")) return ParseCall(name, line);
  return Add(line, Name{Intern(name)});
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseCall(const std::string& function,
                                                         std::uint32_t line) {
  const Signature<Function>* signature = FindFunction(function);
  if (signature == nullptr)
    return NotSupported(line, absl::StrCat("the function '", function, "'"));
  PAGODA_ASSIGN_OR_RETURN(Arguments arguments, ParseArguments());
  if (signature->id == Function::kNamespace) {
    for (const auto& [name, value] : arguments) {
      if (name.empty()) return NotSupported(line, "an unnamed argument of 'namespace'");
    }
    return Add(line, NamespaceCall{std::move(arguments)});
  }
  PAGODA_ASSIGN_OR_RETURN(const BoundArguments bound,
                          BindArguments(*signature, "function", arguments, line));
  switch (signature->id) {
    case Function::kRange:
      return Add(line, RangeCall{bound});
    case Function::kStrftimeNow:
      return Add(line, StrftimeCall{*bound[0]});
    default:
      return Add(line, RaiseCall{*bound[0]});
  }
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseParentheses() {
  stream_.Advance();
  if (stream_.AtOperator(")")) return NotSupported(stream_.line(), "a tuple");
  PAGODA_ASSIGN_OR_RETURN(const Id inner, ParseConditional());
  if (stream_.AtOperator(",")) return NotSupported(stream_.line(), "a tuple");
  PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(")"));
  return inner;
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseList() {
  const std::uint32_t line = stream_.line();
  stream_.Advance();
  ListLiteral node;
  while (!stream_.AtOperator("]")) {
    if (!node.items.empty()) {
      PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.AtOperator("]")) break;
    }
    PAGODA_ASSIGN_OR_RETURN(const Id item, ParseConditional());
    node.items.push_back(item);
  }
  stream_.Advance();
  return Add(line, std::move(node));
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseDict() {
  const std::uint32_t line = stream_.line();
  stream_.Advance();
  DictLiteral node;
  while (!stream_.AtOperator("}")) {
    if (!node.entries.empty()) {
      PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.AtOperator("}")) break;
    }
    PAGODA_ASSIGN_OR_RETURN(const Id key, ParseConditional());
    PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(":"));
    PAGODA_ASSIGN_OR_RETURN(const Id value, ParseConditional());
    node.entries.emplace_back(key, value);
  }
  stream_.Advance();
  return Add(line, std::move(node));
}

absl::Status ExpressionParser::ParsePostfix(std::vector<LinkAt>& links) {
  while (true) {
    const std::uint32_t line = stream_.line();
    if (stream_.TryOperator(".")) {
      PAGODA_ASSIGN_OR_RETURN(Link link, ParseDot());
      links.push_back({line, std::move(link)});
    } else if (stream_.TryOperator("[")) {
      PAGODA_ASSIGN_OR_RETURN(Link link, ParseBracket());
      links.push_back({line, std::move(link)});
    } else if (stream_.AtOperator("(")) {
      return NotSupported(line, "a call of an expression");
    } else {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<Link> ExpressionParser::ParseDot() {
  const Token token = stream_.current();
  if (token.kind != Kind::kName && token.kind != Kind::kInteger) {
    return stream_.Unexpected("a name after '.'");
  }
  stream_.Advance();
  if (token.kind == Kind::kInteger) return SubscriptLink{Add(token.line, Literal{token.integer})};
  if (token.text.starts_with("_")) {
    return NotSupported(token.line, absl::StrCat("the attribute '", token.text, "'"));
  }
  if (!stream_.AtOperator("(")) return AttributeLink{token.text};
  const Signature<Method>* signature = FindMethod(token.text);
  if (signature == nullptr)
    return NotSupported(token.line, absl::StrCat("the method '", token.text, "'"));
  PAGODA_ASSIGN_OR_RETURN(const Arguments arguments, ParseArguments());
  PAGODA_ASSIGN_OR_RETURN(const BoundArguments bound,
                          BindArguments(*signature, "method", arguments, token.line));
  return MethodLink{signature->id, bound};
}

absl::StatusOr<Link> ExpressionParser::ParseBracket() {
  std::optional<Id> bounds[3];
  std::size_t num_colons = 0;
  while (!stream_.AtOperator("]")) {
    if (stream_.TryOperator(":")) {
      if (++num_colons > 2) return stream_.Unexpected("']'");
    } else if (stream_.AtOperator(",")) {
      return NotSupported(stream_.line(), "a subscript with ','");
    } else if (bounds[num_colons].has_value()) {
      return stream_.Unexpected("']'");
    } else {
      PAGODA_ASSIGN_OR_RETURN(bounds[num_colons], ParseConditional());
    }
  }
  if (num_colons == 0 && !bounds[0].has_value()) return stream_.Unexpected("an expression");
  stream_.Advance();
  if (num_colons == 0) return SubscriptLink{*bounds[0]};
  return SliceLink{bounds[0], bounds[1], bounds[2]};
}

}  // namespace pagoda::text::jinja
