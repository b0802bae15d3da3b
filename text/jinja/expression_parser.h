#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "text/jinja/limits.h"
#include "text/jinja/syntax_tree.h"
#include "text/jinja/token_stream.h"

namespace pagoda::text::jinja {

// Parses expressions into a tree under construction; the statement parser owns one and shares its
// stream, its tree and its depth. One method per level of binding, loosest first. Recursion goes
// through Conditional, Not and Unary only, and each counts itself.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : stream_(std::move(tokens)) {}

  // With `a if b else c` at the top level, or without.
  absl::StatusOr<ExpressionId> ParseConditional();
  absl::StatusOr<ExpressionId> ParseOr() { return ParseLogical(false); }

  NameId Intern(const std::string& name);
  TokenStream& stream() { return stream_; }
  SyntaxTree& tree() { return tree_; }

  // One level of nesting, for as long as it lives.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    absl::Status Check() const;

   private:
    ExpressionParser& parser_;
  };

 private:
  using Id = ExpressionId;
  // Positional arguments have an empty name.
  using Arguments = std::vector<std::pair<std::string, Id>>;

  template <typename Node>
  Id Add(std::uint32_t line, Node node) {
    tree_.expressions.push_back({line, std::move(node)});
    return Id(static_cast<std::uint32_t>(tree_.expressions.size() - 1));
  }

  absl::StatusOr<Id> ParseLogical(bool is_and);
  absl::StatusOr<Id> ParseNot();
  absl::StatusOr<Id> ParseComparison();
  std::optional<ComparisonOperator> TryComparisonOperator();
  absl::StatusOr<Id> ParseArithmetic(bool is_sum);
  absl::StatusOr<std::optional<ArithmeticOperator>> TryArithmeticOperator(bool is_sum);
  absl::StatusOr<Id> ParseConcatenation();
  absl::StatusOr<Id> ParsePower();
  absl::StatusOr<Id> ParseUnary(bool with_filters);
  absl::StatusOr<Id> ParsePrimary();
  absl::StatusOr<Id> ParseName();
  absl::StatusOr<Id> ParseCall(const std::string& function, std::uint32_t line);
  absl::StatusOr<Id> ParseParentheses();
  absl::StatusOr<Id> ParseList();
  absl::StatusOr<Id> ParseDict();
  absl::StatusOr<Id> ParseString();

  absl::Status ParsePostfix(std::vector<LinkAt>& links);
  absl::StatusOr<Link> ParseDot();
  absl::StatusOr<Link> ParseBracket();
  absl::Status ParseFilters(std::vector<LinkAt>& links);
  absl::StatusOr<Link> ParseFilter();
  absl::StatusOr<Link> MakeSelection(Filter filter, const BoundArguments& bound,
                                     std::uint32_t line);
  absl::StatusOr<Link> MakeMapping(const BoundArguments& bound, std::uint32_t line);
  absl::StatusOr<std::string> WrittenName(Id id, std::string_view what, std::uint32_t line) const;
  absl::StatusOr<Link> ParseTest();
  bool AtTestArgument() const;
  absl::StatusOr<Id> ParseTestArgument(const Token& test);
  absl::StatusOr<Arguments> ParseArguments();

  TokenStream stream_;
  SyntaxTree tree_;
  std::unordered_map<std::string, NameId> name_ids_;
  int depth_ = 0;
};

}  // namespace pagoda::text::jinja
