#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "text/jinja/apply.h"
#include "text/jinja/marked_string.h"
#include "text/jinja/syntax_tree.h"
#include "text/jinja/workspace.h"

namespace pagoda::text::jinja {

// One rendering of a tree: variables, output, and the line reached. Make it, Set what the template
// may see, Run once. `tree` and `workspace` must outlive it. Recursion follows the nesting of the
// tree, which the parser bounds. Threads: one.
class Evaluator {
 public:
  Evaluator(const SyntaxTree& tree, Workspace& workspace);

  // A variable the template never names is ignored.
  void Set(std::string_view name, Value value);
  // What strftime_now tells; without it there is no such function.
  void SetTime(std::int64_t unix_seconds) { unix_seconds_ = unix_seconds; }
  // Errors: raise_exception gives a FieldError with its own words. Anything else says the line:
  // ResourceExhausted for a limit passed, Unimplemented for what this engine lacks, InvalidArgument
  // for values that do not go together.
  absl::StatusOr<MarkedString> Run();

 private:
  absl::Status RunBody(const Body& body);
  absl::Status Execute(const TextStatement& statement);
  absl::Status Execute(const OutputStatement& statement);
  absl::Status Execute(const SetStatement& statement);
  absl::Status Execute(const IfStatement& statement);
  absl::Status Execute(const ForStatement& statement);
  absl::StatusOr<const std::vector<Value>*> LoopItems(const ForStatement& statement);
  absl::Status AssignItem(const ForStatement& statement, const Value& item);
  absl::Status SetAttribute(const SetStatement& statement, const Value& value);
  absl::Status Emit(const MarkedString& text);

  absl::StatusOr<Value> Evaluate(ExpressionId id);
  absl::StatusOr<Value> Evaluate(const Literal& node);
  absl::StatusOr<Value> Evaluate(const Name& node);
  absl::StatusOr<Value> Evaluate(const ListLiteral& node);
  absl::StatusOr<Value> Evaluate(const DictLiteral& node);
  absl::StatusOr<Value> Evaluate(const Unary& node);
  absl::StatusOr<Value> Evaluate(const Arithmetic& node);
  absl::StatusOr<Value> Evaluate(const Concatenation& node);
  absl::StatusOr<Value> Evaluate(const Comparison& node);
  absl::StatusOr<Value> Evaluate(const Logical& node);
  absl::StatusOr<Value> Evaluate(const Conditional& node);
  absl::StatusOr<Value> Evaluate(const RaiseCall& node);
  absl::StatusOr<Value> Evaluate(const RangeCall& node);
  absl::StatusOr<Value> Evaluate(const StrftimeCall& node);
  absl::StatusOr<Value> Evaluate(const NamespaceCall& node);
  absl::StatusOr<Value> Evaluate(const Chain& node);
  absl::StatusOr<Value> Follow(const AttributeLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const SubscriptLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const SliceLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const MethodLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const FilterLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const TestLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const SelectionLink& link, const Value& value);
  absl::StatusOr<Value> Follow(const MappingLink& link, const Value& value);
  absl::StatusOr<ArgumentValues> EvaluateAll(const BoundArguments& arguments);
  absl::StatusOr<std::optional<Value>> EvaluateOptional(const std::optional<ExpressionId>& id);
  absl::Status AppendTo(MarkedString& text, const MarkedString& more);

  void Assign(NameId name, Value value);
  void LeaveScope(std::size_t first_change);

  const SyntaxTree& tree_;
  Workspace& workspace_;
  std::vector<Value> variables_;  // [name]: what it is in the innermost scope
  std::vector<std::pair<NameId, Value>>
      overwritten_;  // what assignments inside loops replaced, in order
  int scope_depth_ = 0;
  MarkedString output_;
  std::optional<std::int64_t> unix_seconds_;
  std::uint32_t line_ = 0;
  bool raised_ = false;
};

}  // namespace pagoda::text::jinja
