// The part of the expression parser that reads filters, tests and argument lists.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/argument_binding.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/template_error.h"

namespace pagoda::text::jinja {

using Kind = Token::Kind;

absl::Status ExpressionParser::ParseFilters(std::vector<LinkAt>& links) {
  while (true) {
    const std::uint32_t line = stream_.line();
    if (stream_.TryOperator("|")) {
      PAGODA_ASSIGN_OR_RETURN(Link link, ParseFilter());
      links.push_back({line, std::move(link)});
    } else if (stream_.TryWord("is")) {
      PAGODA_ASSIGN_OR_RETURN(Link link, ParseTest());
      links.push_back({line, std::move(link)});
    } else if (stream_.AtOperator("(")) {
      return NotSupported(line, "a call of an expression");
    } else {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<Link> ExpressionParser::ParseFilter() {
  const Token token = stream_.current();
  PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kName, "the name of a filter"));
  const Signature<Filter>* signature = FindFilter(token.text);
  if (signature == nullptr || stream_.AtOperator(".")) {
    return NotSupported(token.line, absl::StrCat("the filter '", token.text, "'"));
  }
  Arguments arguments;
  if (stream_.AtOperator("(")) {
    PAGODA_ASSIGN_OR_RETURN(arguments, ParseArguments());
  }
  PAGODA_ASSIGN_OR_RETURN(const BoundArguments bound,
                          BindArguments(*signature, "filter", arguments, token.line));
  switch (signature->id) {
    case Filter::kSelect:
    case Filter::kReject:
    case Filter::kSelectAttr:
    case Filter::kRejectAttr:
      return MakeSelection(signature->id, bound, token.line);
    case Filter::kMap:
      return MakeMapping(bound, token.line);
    default:
      return FilterLink{signature->id, bound};
  }
}

// Names are resolved here, so they must be written out.
absl::StatusOr<std::string> ExpressionParser::WrittenName(ExpressionId id, std::string_view what,
                                                          std::uint32_t line) const {
  const auto* literal = std::get_if<Literal>(&tree_.at(id).node);
  const auto* text = literal == nullptr ? nullptr : std::get_if<MarkedString>(&literal->value);
  if (text != nullptr && !text->bytes.empty()) return text->bytes;
  return NotSupported(line, absl::StrCat(base::ToAbsl(what), " that is not written as a string"));
}

absl::StatusOr<Link> ExpressionParser::MakeSelection(Filter filter, const BoundArguments& bound,
                                                     std::uint32_t line) {
  SelectionLink link;
  link.keeps = filter == Filter::kSelect || filter == Filter::kSelectAttr;
  const bool by_attribute = filter == Filter::kSelectAttr || filter == Filter::kRejectAttr;
  if (by_attribute) {
    PAGODA_ASSIGN_OR_RETURN(link.attribute, WrittenName(*bound[0], "an attribute", line));
  }
  const std::size_t test_at = by_attribute ? 1 : 0;
  if (!bound[test_at].has_value()) return link;
  PAGODA_ASSIGN_OR_RETURN(const std::string name, WrittenName(*bound[test_at], "a test", line));
  link.test = FindTest(name);
  if (!link.test.has_value()) return NotSupported(line, absl::StrCat("the test '", name, "'"));
  link.argument = bound[test_at + 1];
  if (link.argument.has_value() == TakesArgument(*link.test)) return link;
  return ErrorAtLine(line,
                     absl::StrCat("the test '", name, "' takes ",
                                  TakesArgument(*link.test) ? "one argument" : "no argument"));
}

absl::StatusOr<Link> ExpressionParser::MakeMapping(const BoundArguments& bound,
                                                   std::uint32_t line) {
  MappingLink link;
  const auto& [filter_name, attribute, otherwise] = bound;
  if (filter_name.has_value() == attribute.has_value() ||
      (filter_name.has_value() && otherwise.has_value())) {
    return NotSupported(line, "the filter 'map' with other than an attribute or a filter's name");
  }
  link.otherwise = otherwise;
  if (attribute.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(link.attribute, WrittenName(*attribute, "an attribute", line));
    return link;
  }
  PAGODA_ASSIGN_OR_RETURN(const std::string name, WrittenName(*filter_name, "a filter", line));
  const Signature<Filter>* signature = FindFilter(name);
  if (signature == nullptr || signature->num_required > 0 || signature->id >= Filter::kSelect) {
    return NotSupported(line, absl::StrCat("the filter '", name, "' inside 'map'"));
  }
  link.filter = signature->id;
  return link;
}

absl::StatusOr<Link> ExpressionParser::ParseTest() {
  const bool negated = stream_.TryWord("not");
  const Token token = stream_.current();
  PAGODA_RETURN_IF_ERROR(stream_.Expect(Kind::kName, "the name of a test"));
  const std::optional<Test> test = FindTest(token.text);
  if (!test.has_value())
    return NotSupported(token.line, absl::StrCat("the test '", token.text, "'"));
  TestLink link{*test, negated, std::nullopt};
  const Token next = stream_.current();
  if (!AtTestArgument()) {
    if (!TakesArgument(*test)) return link;
    return ErrorAtLine(next.line, absl::StrCat("the test '", token.text, "' takes one argument"));
  }
  if (next.Is(Kind::kName, "is")) {
    return ErrorAtLine(next.line, "tests cannot follow each other");
  }
  // What may be read as an argument without parentheses is one, so it is refused rather than left
  // for what follows.
  if (!TakesArgument(*test)) {
    return NotSupported(next.line, absl::StrCat("an argument of the test '", token.text, "'"));
  }
  PAGODA_ASSIGN_OR_RETURN(link.argument, ParseTestArgument(token));
  return link;
}

bool ExpressionParser::AtTestArgument() const {
  const Token& next = stream_.current();
  if (next.kind == Kind::kName) {
    return next.text != "else" && next.text != "or" && next.text != "and";
  }
  return next.kind == Kind::kString || next.kind == Kind::kInteger ||
         next.Is(Kind::kOperator, "(") || next.Is(Kind::kOperator, "[") ||
         next.Is(Kind::kOperator, "{");
}

absl::StatusOr<ExpressionId> ExpressionParser::ParseTestArgument(const Token& test) {
  const std::uint32_t line = stream_.line();
  if (stream_.AtOperator("(")) {
    PAGODA_ASSIGN_OR_RETURN(const Arguments arguments, ParseArguments());
    if (arguments.size() == 1 && arguments[0].first.empty()) return arguments[0].second;
    return ErrorAtLine(line, absl::StrCat("the test '", test.text, "' takes one argument"));
  }
  PAGODA_ASSIGN_OR_RETURN(const Id first, ParsePrimary());
  Chain chain{first, {}};
  PAGODA_RETURN_IF_ERROR(ParsePostfix(chain.links));
  return chain.links.empty() ? first : Add(line, std::move(chain));
}

absl::StatusOr<ExpressionParser::Arguments> ExpressionParser::ParseArguments() {
  PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator("("));
  Arguments arguments;
  while (!stream_.AtOperator(")")) {
    if (!arguments.empty()) {
      PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.AtOperator(")")) break;
    }
    if (stream_.AtOperator("*") || stream_.AtOperator("**")) {
      return NotSupported(stream_.line(), "an argument that unpacks");
    }
    std::string name;
    if (stream_.current().kind == Kind::kName && stream_.following().Is(Kind::kOperator, "=")) {
      name = stream_.current().text;
      stream_.Advance();
      stream_.Advance();
    } else if (!arguments.empty() && !arguments.back().first.empty()) {
      return ErrorAtLine(stream_.line(), "an unnamed argument follows a named one");
    }
    PAGODA_ASSIGN_OR_RETURN(const Id value, ParseConditional());
    arguments.emplace_back(std::move(name), value);
  }
  stream_.Advance();
  return arguments;
}

}  // namespace pagoda::text::jinja
