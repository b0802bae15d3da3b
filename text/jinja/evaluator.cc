#include "text/jinja/evaluator.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/apply.h"
#include "text/jinja/lexer.h"
#include "text/jinja/operators.h"
#include "text/jinja/selection.h"
#include "text/jinja/template_error.h"
#include "text/jinja/time_text.h"

namespace pagoda::text::jinja {
namespace {

using String = const MarkedString*;

constexpr std::int64_t kMaxRange = 100'000;  // as Jinja's sandbox has it

}  // namespace

Evaluator::Evaluator(const SyntaxTree& tree, Workspace& workspace)
    : tree_(tree), workspace_(workspace) {
  for (const std::string& name : tree.names) {
    const Signature<Function>* function = FindFunction(name);
    variables_.emplace_back(function == nullptr ? Value(Undefined{name}) : Value(function->id));
  }
}

void Evaluator::Set(std::string_view name, Value value) {
  for (std::size_t i = 0; i < tree_.names.size(); ++i) {
    if (tree_.names[i] == name) variables_[i] = value;
  }
}

absl::StatusOr<MarkedString> Evaluator::Run() {
  absl::Status status = RunBody(tree_.body);
  if (status.ok()) return std::move(output_);
  if (raised_) return status;
  return absl::Status(status.code(), ErrorAtLine(line_, base::ToStd(status.message())).message());
}

// --- Statements ---

absl::Status Evaluator::RunBody(const Body& body) {
  for (const StatementId id : body) {
    const Statement& statement = tree_.at(id);
    line_ = statement.line;
    PAGODA_RETURN_IF_ERROR(workspace_.Spend(1));
    PAGODA_RETURN_IF_ERROR(
        std::visit([&](const auto& node) { return Execute(node); }, statement.node));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::Emit(const MarkedString& text) {
  if (output_.bytes.size() + text.bytes.size() > kMaxOutputBytes) {
    return Workspace::TooMuch("kMaxOutputBytes", static_cast<std::int64_t>(kMaxOutputBytes));
  }
  PAGODA_RETURN_IF_ERROR(workspace_.SpendOnBytes(text.bytes.size()));
  output_.Append(text);
  return absl::OkStatus();
}

absl::Status Evaluator::Execute(const TextStatement& statement) {
  return Emit(MarkedString::FromTemplate(statement.text));
}

absl::Status Evaluator::Execute(const OutputStatement& statement) {
  PAGODA_ASSIGN_OR_RETURN(const Value value, Evaluate(statement.expression));
  PAGODA_ASSIGN_OR_RETURN(String text, ToText(value, workspace_));
  return Emit(*text);
}

absl::Status Evaluator::Execute(const SetStatement& statement) {
  PAGODA_ASSIGN_OR_RETURN(const Value value, Evaluate(statement.value));
  if (!statement.attribute.empty()) return SetAttribute(statement, value);
  Assign(statement.name, value);
  return absl::OkStatus();
}

absl::Status Evaluator::SetAttribute(const SetStatement& statement, const Value& value) {
  const Value& holder = variables_[statement.name.value()];
  auto* const* space = std::get_if<Namespace*>(&holder);
  if (space == nullptr) return TypeError("cannot have an attribute set; a namespace can", holder);
  auto& attributes = (*space)->attributes;
  PAGODA_RETURN_IF_ERROR(workspace_.Spend(1 + static_cast<std::int64_t>(attributes.size()) / 8));
  for (auto& [name, attribute] : attributes) {
    if (name != statement.attribute) continue;
    attribute = value;
    return absl::OkStatus();
  }
  PAGODA_RETURN_IF_ERROR(workspace_.Hold(sizeof(attributes[0])));
  attributes.emplace_back(statement.attribute, value);
  return absl::OkStatus();
}

absl::Status Evaluator::Execute(const IfStatement& statement) {
  for (const IfStatement::Branch& branch : statement.branches) {
    PAGODA_ASSIGN_OR_RETURN(const Value condition, Evaluate(branch.condition));
    if (IsTruthy(condition)) return RunBody(branch.body);
  }
  return RunBody(statement.otherwise);
}

// Each iteration is a scope of its own: what its body sets is gone when it ends, and only a
// namespace carries on.
absl::Status Evaluator::Execute(const ForStatement& statement) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, LoopItems(statement));
  const std::size_t first_change = overwritten_.size();
  ++scope_depth_;
  if (items->empty()) {
    PAGODA_RETURN_IF_ERROR(RunBody(statement.otherwise));
    LeaveScope(first_change);
  } else {
    PAGODA_ASSIGN_OR_RETURN(Loop * loop, workspace_.NewLoop(*items));
    for (; loop->index < loop->length(); ++loop->index) {
      PAGODA_RETURN_IF_ERROR(workspace_.Spend(1));
      PAGODA_RETURN_IF_ERROR(
          AssignItem(statement, (*items)[static_cast<std::size_t>(loop->index)]));
      Assign(tree_.loop_name, static_cast<const Loop*>(loop));
      PAGODA_RETURN_IF_ERROR(RunBody(statement.body));
      LeaveScope(first_change);
    }
  }
  --scope_depth_;
  return absl::OkStatus();
}

// The condition sees each item under the loop's variables and is settled before the first turn.
absl::StatusOr<const std::vector<Value>*> Evaluator::LoopItems(const ForStatement& statement) {
  PAGODA_ASSIGN_OR_RETURN(const Value iterable, Evaluate(statement.iterable));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(iterable, workspace_));
  if (!statement.condition.has_value()) return items;
  std::vector<Value> kept;
  const std::size_t first_change = overwritten_.size();
  ++scope_depth_;
  for (const Value& item : *items) {
    PAGODA_RETURN_IF_ERROR(workspace_.Spend(1));
    PAGODA_RETURN_IF_ERROR(AssignItem(statement, item));
    PAGODA_ASSIGN_OR_RETURN(const Value condition, Evaluate(*statement.condition));
    if (IsTruthy(condition)) kept.push_back(item);
    LeaveScope(first_change);
  }
  --scope_depth_;
  PAGODA_ASSIGN_OR_RETURN(const List* list, workspace_.NewList(std::move(kept)));
  return &list->items;
}

absl::Status Evaluator::AssignItem(const ForStatement& statement, const Value& item) {
  if (statement.targets.size() == 1) {
    Assign(statement.targets[0], item);
    return absl::OkStatus();
  }
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* parts, Items(item, workspace_));
  if (parts->size() != statement.targets.size()) {
    return absl::InvalidArgumentError(absl::StrCat("an item of ", parts->size(),
                                                   " parts cannot be unpacked into ",
                                                   statement.targets.size(), " variables"));
  }
  for (std::size_t i = 0; i < parts->size(); ++i) Assign(statement.targets[i], (*parts)[i]);
  return absl::OkStatus();
}

void Evaluator::Assign(NameId name, Value value) {
  Value& variable = variables_[name.value()];
  if (scope_depth_ > 0) overwritten_.emplace_back(name, variable);
  variable = value;
}

void Evaluator::LeaveScope(std::size_t first_change) {
  PAGODA_CHECK(first_change <= overwritten_.size());
  while (overwritten_.size() > first_change) {
    const auto& [name, value] = overwritten_.back();
    variables_[name.value()] = value;
    overwritten_.pop_back();
  }
}

// --- Expressions ---

absl::StatusOr<Value> Evaluator::Evaluate(ExpressionId id) {
  const Expression& expression = tree_.at(id);
  const std::uint32_t outer_line = line_;
  line_ = expression.line;
  PAGODA_RETURN_IF_ERROR(workspace_.Spend(1));
  absl::StatusOr<Value> value =
      std::visit([&](const auto& node) { return Evaluate(node); }, expression.node);
  if (value.ok()) line_ = outer_line;  // after an error the line stays where it happened
  return value;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Literal& node) {
  if (const auto* flag = std::get_if<bool>(&node.value)) return *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) return *integer;
  if (const auto* text = std::get_if<MarkedString>(&node.value)) return text;
  return None{};
}

absl::StatusOr<Value> Evaluator::Evaluate(const Name& node) {
  const Value& value = variables_[node.name.value()];
  const auto* function = std::get_if<Function>(&value);
  if (function != nullptr && *function == Function::kStrftimeNow && !unix_seconds_.has_value()) {
    return Undefined{"strftime_now"};
  }
  return value;
}

absl::StatusOr<Value> Evaluator::Evaluate(const ListLiteral& node) {
  std::vector<Value> items;
  for (const ExpressionId id : node.items) {
    PAGODA_ASSIGN_OR_RETURN(const Value item, Evaluate(id));
    items.push_back(item);
  }
  PAGODA_ASSIGN_OR_RETURN(const List* list, workspace_.NewList(std::move(items)));
  return list;
}

absl::StatusOr<Value> Evaluator::Evaluate(const DictLiteral& node) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_id, value_id] : node.entries) {
    PAGODA_ASSIGN_OR_RETURN(const Value key, Evaluate(key_id));
    PAGODA_ASSIGN_OR_RETURN(const Value value, Evaluate(value_id));
    entries.emplace_back(key, value);
  }
  PAGODA_ASSIGN_OR_RETURN(const Dict* dict, workspace_.NewDict(entries));
  return dict;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Unary& node) {
  PAGODA_ASSIGN_OR_RETURN(const Value operand, Evaluate(node.operand));
  if (node.op == UnaryOperator::kNot) return !IsTruthy(operand);
  if (node.op == UnaryOperator::kMinus) return Negate(operand);
  const std::optional<std::int64_t> integer = AsInteger(operand);
  if (!integer.has_value()) return TypeError("cannot follow the sign '+'", operand);
  return *integer;
}

absl::Status Evaluator::AppendTo(MarkedString& text, const MarkedString& more) {
  PAGODA_RETURN_IF_ERROR(workspace_.Hold(more.held_bytes()));
  text.Append(more);
  return absl::OkStatus();
}

// A chain of string additions grows one new string instead of making one per sign.
absl::StatusOr<Value> Evaluator::Evaluate(const Arithmetic& node) {
  PAGODA_ASSIGN_OR_RETURN(Value total, Evaluate(node.first));
  MarkedString* own_total = nullptr;
  for (const auto& [op, id] : node.rest) {
    PAGODA_ASSIGN_OR_RETURN(const Value operand, Evaluate(id));
    const auto* left = std::get_if<String>(&total);
    const auto* right = std::get_if<String>(&operand);
    if (op != ArithmeticOperator::kAdd || left == nullptr || right == nullptr) {
      PAGODA_ASSIGN_OR_RETURN(total, Calculate(op, total, operand, workspace_));
      continue;
    }
    if (own_total == nullptr) {
      PAGODA_ASSIGN_OR_RETURN(own_total, workspace_.NewOpenString(**left));
      total = static_cast<String>(own_total);
    }
    PAGODA_RETURN_IF_ERROR(AppendTo(*own_total, **right));
  }
  return total;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Concatenation& node) {
  PAGODA_ASSIGN_OR_RETURN(MarkedString * text, workspace_.NewOpenString({}));
  for (const ExpressionId id : node.parts) {
    PAGODA_ASSIGN_OR_RETURN(const Value value, Evaluate(id));
    PAGODA_ASSIGN_OR_RETURN(String part, ToText(value, workspace_));
    PAGODA_RETURN_IF_ERROR(AppendTo(*text, *part));
  }
  return static_cast<String>(text);
}

absl::StatusOr<Value> Evaluator::Evaluate(const Comparison& node) {
  PAGODA_ASSIGN_OR_RETURN(Value left, Evaluate(node.first));
  for (const auto& [op, id] : node.rest) {
    PAGODA_ASSIGN_OR_RETURN(const Value right, Evaluate(id));
    PAGODA_ASSIGN_OR_RETURN(const bool holds, Compare(op, left, right, workspace_));
    if (!holds) return false;
    left = right;
  }
  return true;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Logical& node) {
  Value value = None{};
  for (const ExpressionId id : node.operands) {
    PAGODA_ASSIGN_OR_RETURN(value, Evaluate(id));
    if (IsTruthy(value) != node.is_and) return value;
  }
  return value;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Conditional& node) {
  PAGODA_ASSIGN_OR_RETURN(const Value condition, Evaluate(node.condition));
  if (IsTruthy(condition)) return Evaluate(node.then);
  if (node.otherwise.has_value()) return Evaluate(*node.otherwise);
  return Undefined{"an 'if' without 'else'"};
}

absl::StatusOr<Value> Evaluator::Evaluate(const RaiseCall& node) {
  PAGODA_ASSIGN_OR_RETURN(const Value message, Evaluate(node.message));
  PAGODA_ASSIGN_OR_RETURN(String text, ToText(message, workspace_));
  raised_ = true;
  return base::FieldError("messages",
                          absl::StrCat("the model's chat template refuses them: ", text->bytes));
}

absl::StatusOr<Value> Evaluator::Evaluate(const RangeCall& node) {
  std::array<std::int64_t, kMaxParameters> bounds = {};
  std::size_t num_bounds = 0;
  for (const auto& id : node.bounds) {
    if (!id.has_value()) break;
    PAGODA_ASSIGN_OR_RETURN(const Value bound, Evaluate(*id));
    const std::optional<std::int64_t> integer = AsInteger(bound);
    if (!integer.has_value()) return TypeError("cannot bound a range", bound);
    bounds[num_bounds++] = *integer;
  }
  const std::int64_t begin = num_bounds == 1 ? 0 : bounds[0];
  const std::int64_t end = num_bounds == 1 ? bounds[0] : bounds[1];
  const std::int64_t step = num_bounds == 3 ? bounds[2] : 1;
  if (step == 0) return absl::InvalidArgumentError("the step of a range is zero");
  std::vector<Value> items;
  for (std::int64_t at = begin; step > 0 ? at < end : at > end;) {
    if (static_cast<std::int64_t>(items.size()) >= kMaxRange) {
      return Workspace::TooMuch("kMaxRange", kMaxRange);
    }
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  PAGODA_RETURN_IF_ERROR(workspace_.Spend(static_cast<std::int64_t>(items.size())));
  PAGODA_ASSIGN_OR_RETURN(const List* list, workspace_.NewList(std::move(items)));
  return list;
}

absl::StatusOr<Value> Evaluator::Evaluate(const StrftimeCall& node) {
  PAGODA_ASSIGN_OR_RETURN(const Value format, Evaluate(node.format));
  const auto* text = std::get_if<String>(&format);
  if (text == nullptr) return TypeError("cannot be the format of a time", format);
  if (!unix_seconds_.has_value()) {
    return TypeError("", Undefined{"strftime_now"});
  }
  PAGODA_ASSIGN_OR_RETURN(std::string time, FormatTime((*text)->bytes, *unix_seconds_));
  PAGODA_ASSIGN_OR_RETURN(String made, workspace_.NewString(time));
  return made;
}

absl::StatusOr<Value> Evaluator::Evaluate(const NamespaceCall& node) {
  PAGODA_ASSIGN_OR_RETURN(Namespace * space, workspace_.NewNamespace());
  PAGODA_RETURN_IF_ERROR(workspace_.Hold(node.attributes.size() * sizeof(space->attributes[0])));
  for (const auto& [name, id] : node.attributes) {
    PAGODA_ASSIGN_OR_RETURN(const Value value, Evaluate(id));
    space->attributes.emplace_back(name, value);
  }
  return space;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Chain& node) {
  PAGODA_ASSIGN_OR_RETURN(Value value, Evaluate(node.first));
  for (const LinkAt& link : node.links) {
    line_ = link.line;
    PAGODA_RETURN_IF_ERROR(workspace_.Spend(1));
    PAGODA_ASSIGN_OR_RETURN(
        value, std::visit([&](const auto& to) { return Follow(to, value); }, link.link));
  }
  return value;
}

absl::StatusOr<Value> Evaluator::Follow(const AttributeLink& link, const Value& value) {
  return Attribute(value, link.name, workspace_);
}

absl::StatusOr<Value> Evaluator::Follow(const SubscriptLink& link, const Value& value) {
  PAGODA_ASSIGN_OR_RETURN(const Value index, Evaluate(link.index));
  return Subscript(value, index, workspace_);
}

absl::StatusOr<Value> Evaluator::Follow(const SliceLink& link, const Value& value) {
  SliceBounds bounds;
  if (link.start.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(bounds.start, Evaluate(*link.start));
  }
  if (link.stop.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(bounds.stop, Evaluate(*link.stop));
  }
  if (link.step.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(bounds.step, Evaluate(*link.step));
  }
  return Slice(value, bounds, workspace_);
}

absl::StatusOr<ArgumentValues> Evaluator::EvaluateAll(const BoundArguments& arguments) {
  ArgumentValues values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(values[i], EvaluateOptional(arguments[i]));
  }
  return values;
}

absl::StatusOr<std::optional<Value>> Evaluator::EvaluateOptional(
    const std::optional<ExpressionId>& id) {
  if (!id.has_value()) return std::optional<Value>();
  PAGODA_ASSIGN_OR_RETURN(const Value value, Evaluate(*id));
  return std::optional<Value>(value);
}

absl::StatusOr<Value> Evaluator::Follow(const MethodLink& link, const Value& value) {
  PAGODA_ASSIGN_OR_RETURN(const ArgumentValues arguments, EvaluateAll(link.arguments));
  return CallMethod(link.method, value, arguments, workspace_);
}

absl::StatusOr<Value> Evaluator::Follow(const FilterLink& link, const Value& value) {
  PAGODA_ASSIGN_OR_RETURN(const ArgumentValues arguments, EvaluateAll(link.arguments));
  return ApplyFilter(link.filter, value, arguments, workspace_);
}

absl::StatusOr<Value> Evaluator::Follow(const TestLink& link, const Value& value) {
  PAGODA_ASSIGN_OR_RETURN(const std::optional<Value> argument, EvaluateOptional(link.argument));
  PAGODA_ASSIGN_OR_RETURN(const bool holds, ApplyTest(link.test, value, argument, workspace_));
  return holds != link.negated;
}

absl::StatusOr<Value> Evaluator::Follow(const SelectionLink& link, const Value& value) {
  Selection selection{link.keeps, link.attribute, link.test, std::nullopt};
  PAGODA_ASSIGN_OR_RETURN(selection.argument, EvaluateOptional(link.argument));
  return Select(selection, value, workspace_);
}

absl::StatusOr<Value> Evaluator::Follow(const MappingLink& link, const Value& value) {
  Mapping mapping{link.attribute, std::nullopt, link.filter};
  PAGODA_ASSIGN_OR_RETURN(mapping.otherwise, EvaluateOptional(link.otherwise));
  return Map(mapping, value, workspace_);
}

}  // namespace pagoda::text::jinja
