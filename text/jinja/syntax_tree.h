#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/strong_id.h"
#include "text/jinja/builtins.h"
#include "text/jinja/marked_string.h"

namespace pagoda::text::jinja {

// A parsed template. Nodes refer to each other by index into the tree's two tables, so that neither
// building nor destroying one recurses; chains (a + b + c, a.b[0]|trim) are one node with many
// links, so that depth is nesting only, bounded by the parser.
using ExpressionId = base::StrongId<struct ExpressionTag, std::uint32_t>;
using StatementId = base::StrongId<struct StatementTag, std::uint32_t>;
using NameId = base::StrongId<struct NameTag, std::uint32_t>;

// --- Expressions ---

struct NoneLiteral {};
struct Literal {
  std::variant<NoneLiteral, bool, std::int64_t, MarkedString> value;
};
struct Name {
  NameId name;
};
struct ListLiteral {
  std::vector<ExpressionId> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionId, ExpressionId>> entries;
};
enum class UnaryOperator : std::uint8_t { kNot, kMinus, kPlus };
struct Unary {
  UnaryOperator op;
  ExpressionId operand;
};
enum class ArithmeticOperator : std::uint8_t { kAdd, kSubtract, kMultiply, kFloorDivide, kModulo };
struct Arithmetic {  // left to right; the links of one node bind equally tight
  ExpressionId first;
  std::vector<std::pair<ArithmeticOperator, ExpressionId>> rest;
};
struct Concatenation {
  std::vector<ExpressionId> parts;
};
enum class ComparisonOperator : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};
struct Comparison {  // a < b < c means a < b and b < c
  ExpressionId first;
  std::vector<std::pair<ComparisonOperator, ExpressionId>> rest;
};
struct Logical {
  bool is_and;
  std::vector<ExpressionId> operands;
};
struct Conditional {
  ExpressionId condition, then;
  std::optional<ExpressionId> otherwise;
};
struct RaiseCall {
  ExpressionId message;
};
struct RangeCall {
  std::array<std::optional<ExpressionId>, kMaxParameters> bounds;  // as many as were written
};
struct StrftimeCall {
  ExpressionId format;
};
struct NamespaceCall {
  std::vector<std::pair<std::string, ExpressionId>> attributes;
};

// By parameter, absent where the call gives none.
using BoundArguments = std::array<std::optional<ExpressionId>, kMaxParameters>;
struct AttributeLink {
  std::string name;
};
struct SubscriptLink {
  ExpressionId index;
};
struct SliceLink {
  std::optional<ExpressionId> start, stop, step;
};
struct MethodLink {
  Method method;
  BoundArguments arguments;
};
struct FilterLink {
  Filter filter;
  BoundArguments arguments;
};
struct TestLink {
  Test test;
  bool negated;
  std::optional<ExpressionId> argument;
};
struct SelectionLink {       // select, reject, selectattr, rejectattr
  bool keeps = true;         // what the test holds for
  std::string attribute;     // empty: the item itself is tested
  std::optional<Test> test;  // absent: whether it is truthy
  std::optional<ExpressionId> argument;
};
struct MappingLink {  // map: by an attribute, or by a filter
  std::string attribute;
  std::optional<ExpressionId> otherwise;  // where an item lacks the attribute
  Filter filter = Filter::kSafe;
};
using Link = std::variant<AttributeLink, SubscriptLink, SliceLink, MethodLink, FilterLink, TestLink,
                          SelectionLink, MappingLink>;
struct LinkAt {
  std::uint32_t line;
  Link link;
};
struct Chain {
  ExpressionId first;
  std::vector<LinkAt> links;
};

struct Expression {
  std::uint32_t line = 0;
  std::variant<Literal, Name, ListLiteral, DictLiteral, Unary, Arithmetic, Concatenation,
               Comparison, Logical, Conditional, RaiseCall, RangeCall, StrftimeCall, NamespaceCall,
               Chain>
      node;
};

// --- Statements ---

using Body = std::vector<StatementId>;
struct TextStatement {
  std::string text;
};
struct OutputStatement {
  ExpressionId expression;
};
struct SetStatement {
  NameId name;
  std::string attribute;  // not empty: the name is a namespace, and this attribute of it is set
  ExpressionId value;
};
struct IfStatement {
  struct Branch {
    ExpressionId condition;
    Body body;
  };
  std::vector<Branch> branches;
  Body otherwise;
};
struct ForStatement {
  std::vector<NameId> targets;  // several: each item is taken apart
  ExpressionId iterable;
  std::optional<ExpressionId> condition;  // items it does not hold for are not walked over
  Body body, otherwise;
};
struct Statement {
  std::uint32_t line = 0;
  std::variant<TextStatement, OutputStatement, SetStatement, IfStatement, ForStatement> node;
};

struct SyntaxTree {
  std::vector<Expression> expressions;
  std::vector<Statement> statements;
  std::vector<std::string> names;  // every variable the template speaks of, once
  NameId loop_name;
  Body body;

  const Expression& at(ExpressionId id) const { return expressions[id.value()]; }
  const Statement& at(StatementId id) const { return statements[id.value()]; }
};

}  // namespace pagoda::text::jinja
