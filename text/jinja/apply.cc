#include "text/jinja/apply.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "text/jinja/json_text.h"
#include "text/jinja/operators.h"
#include "text/jinja/string_methods.h"
#include "text/jinja/workspace.h"

namespace pagoda::text::jinja {
namespace {

using String = const MarkedString*;

absl::StatusOr<Value> Length(const Value& input, Workspace& workspace) {
  if (const auto* text = std::get_if<String>(&input)) {
    PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes((*text)->bytes.size()));
    std::int64_t characters = 0;
    for (const char c : (*text)->bytes)
      characters += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    return characters;
  }
  if (const auto* loop = std::get_if<const Loop*>(&input)) return (*loop)->length();
  if (const auto* dict = std::get_if<const Dict*>(&input)) {
    return static_cast<std::int64_t>((*dict)->entries.size());
  }
  const auto* list = std::get_if<const List*>(&input);
  if (list != nullptr && (*list)->kind != List::Kind::kStream) {
    return static_cast<std::int64_t>((*list)->items.size());
  }
  if (std::holds_alternative<Undefined>(input)) return std::int64_t{0};
  return TypeError("has no length", input);
}

absl::StatusOr<Value> Join(const Value& input, const std::optional<Value>& separator,
                           Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(input, workspace));
  String between = nullptr;
  if (separator.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(between, ToText(*separator, workspace));
  }
  PAGODA_ASSIGN_OR_RETURN(MarkedString * joined, workspace.NewOpenString({}));
  for (std::size_t i = 0; i < items->size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(String part, ToText((*items)[i], workspace));
    const bool separated = i > 0 && between != nullptr;
    PAGODA_RETURN_IF_ERROR(
        workspace.Hold(part->held_bytes() + (separated ? between->held_bytes() : 0)));
    if (separated) joined->Append(*between);
    joined->Append(*part);
  }
  return static_cast<String>(joined);
}

absl::StatusOr<Value> Default(const Value& input, const ArgumentValues& arguments,
                              Workspace& workspace) {
  const bool also_falsy = arguments[1].has_value() && IsTruthy(*arguments[1]);
  const bool is_absent =
      std::holds_alternative<Undefined>(input) || (also_falsy && !IsTruthy(input));
  if (!is_absent) return input;
  if (arguments[0].has_value()) return *arguments[0];
  PAGODA_ASSIGN_OR_RETURN(String empty, workspace.NewString(""));
  return empty;
}

absl::StatusOr<Value> Json(const Value& input, const std::optional<Value>& indent_value,
                           Workspace& workspace) {
  std::optional<std::int64_t> indent;
  if (indent_value.has_value() && !std::holds_alternative<None>(*indent_value)) {
    indent = AsInteger(*indent_value);
    if (!indent.has_value()) return TypeError("cannot be the indent of 'tojson'", *indent_value);
  }
  PAGODA_ASSIGN_OR_RETURN(MarkedString json, ToJson(input, indent, workspace));
  PAGODA_ASSIGN_OR_RETURN(String made, workspace.NewString(std::move(json)));
  return made;
}

enum class DictPart : std::uint8_t { kItems, kKeys, kValues };

absl::StatusOr<Value> View(const Value& input, DictPart part, Workspace& workspace) {
  const auto* dict = std::get_if<const Dict*>(&input);
  if (dict == nullptr) return TypeError("has none of the methods of a dict", input);
  PAGODA_RETURN_IF_ERROR(workspace.Spend(static_cast<std::int64_t>((*dict)->entries.size())));
  std::vector<Value> parts;
  for (const auto& [key, value] : (*dict)->entries) {
    if (part == DictPart::kItems) {
      PAGODA_ASSIGN_OR_RETURN(const List* pair, workspace.NewList({key, value}));
      parts.emplace_back(pair);
    } else {
      parts.push_back(part == DictPart::kKeys ? key : value);
    }
  }
  PAGODA_ASSIGN_OR_RETURN(const List* view, workspace.NewList(std::move(parts), List::Kind::kView));
  return view;
}

// The filter: nothing for an undefined value, where the method would be an error.
absl::StatusOr<Value> ItemsFilter(const Value& input, Workspace& workspace) {
  if (!std::holds_alternative<Undefined>(input)) {
    const auto* dict = std::get_if<const Dict*>(&input);
    if (dict == nullptr) return TypeError("cannot be taken apart into items", input);
    PAGODA_ASSIGN_OR_RETURN(const Value view, View(input, DictPart::kItems, workspace));
    PAGODA_ASSIGN_OR_RETURN(
        const List* stream,
        workspace.NewList(std::get<const List*>(view)->items, List::Kind::kStream));
    return stream;
  }
  PAGODA_ASSIGN_OR_RETURN(const List* none, workspace.NewList({}, List::Kind::kStream));
  return none;
}

absl::StatusOr<Value> StringFilter(Filter filter, const Value& input,
                                   const ArgumentValues& arguments, Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(String text, ToText(input, workspace));
  switch (filter) {
    case Filter::kTrim:
      return Strip(*text, Sides::kBoth, arguments[0], workspace);
    case Filter::kUpper:
      return ChangeCase(*text, Case::kUpper, workspace);
    case Filter::kLower:
      return ChangeCase(*text, Case::kLower, workspace);
    case Filter::kCapitalize:
      return ChangeCase(*text, Case::kCapital, workspace);
    case Filter::kReplace:
      return Replace(*text, {*arguments[0], *arguments[1], arguments[2]}, workspace);
    default:
      return text;
  }
}

absl::StatusOr<Value> StringMethod(Method method, const MarkedString& text,
                                   const ArgumentValues& arguments, Workspace& workspace) {
  switch (method) {
    case Method::kStrip:
      return Strip(text, Sides::kBoth, arguments[0], workspace);
    case Method::kLstrip:
      return Strip(text, Sides::kLeft, arguments[0], workspace);
    case Method::kRstrip:
      return Strip(text, Sides::kRight, arguments[0], workspace);
    case Method::kSplit:
      return Split(text, arguments[0], workspace);
    case Method::kUpper:
      return ChangeCase(text, Case::kUpper, workspace);
    case Method::kLower:
      return ChangeCase(text, Case::kLower, workspace);
    case Method::kCapitalize:
      return ChangeCase(text, Case::kCapital, workspace);
    case Method::kReplace:
      return Replace(text, {*arguments[0], *arguments[1], arguments[2]}, workspace);
    default:
      break;
  }
  const auto* part = std::get_if<String>(&*arguments[0]);
  if (part == nullptr) return TypeError("cannot be looked for in a str", *arguments[0]);
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes((*part)->bytes.size()));
  return method == Method::kStartsWith ? text.bytes.starts_with((*part)->bytes)
                                       : text.bytes.ends_with((*part)->bytes);
}

absl::StatusOr<bool> TestInteger(Test test, const Value& input, const Value& divisor) {
  const std::optional<std::int64_t> integer = AsInteger(input), by = AsInteger(divisor);
  if (!integer.has_value()) return TypeError("has no remainder", input);
  if (!by.has_value()) return TypeError("cannot divide", divisor);
  if (*by == 0) return absl::InvalidArgumentError("division by zero");
  const bool divides = *by == -1 || *integer % *by == 0;
  return divides != (test == Test::kOdd);
}

absl::StatusOr<bool> TestAgainst(Test test, const Value& input, const Value& argument,
                                 Workspace& workspace) {
  using Op = ComparisonOperator;
  switch (test) {
    case Test::kIn:
      return Compare(Op::kIn, input, argument, workspace);
    case Test::kEqual:
      return Compare(Op::kEqual, input, argument, workspace);
    case Test::kNotEqual:
      return Compare(Op::kNotEqual, input, argument, workspace);
    case Test::kLess:
      return Compare(Op::kLess, input, argument, workspace);
    case Test::kLessEqual:
      return Compare(Op::kLessEqual, input, argument, workspace);
    case Test::kGreater:
      return Compare(Op::kGreater, input, argument, workspace);
    case Test::kGreaterEqual:
      return Compare(Op::kGreaterEqual, input, argument, workspace);
    default:
      return TestInteger(test, input, argument);
  }
}

bool TestKind(Test test, const Value& input) {
  const bool is_undefined = std::holds_alternative<Undefined>(input);
  const bool is_bool = std::holds_alternative<bool>(input);
  const bool is_integer = std::holds_alternative<std::int64_t>(input);
  const bool is_float = std::holds_alternative<double>(input);
  const bool is_string = std::holds_alternative<String>(input);
  const bool is_dict = std::holds_alternative<const Dict*>(input);
  switch (test) {
    case Test::kDefined:
      return !is_undefined;
    case Test::kUndefined:
      return is_undefined;
    case Test::kNone:
      return std::holds_alternative<None>(input);
    case Test::kString:
      return is_string;
    case Test::kBoolean:
      return is_bool;
    case Test::kInteger:
      return is_integer;
    case Test::kFloat:
      return is_float;
    case Test::kNumber:
      return is_integer || is_bool || is_float;
    case Test::kMapping:
      return is_dict;
    case Test::kSequence:  // an undefined value has a length and items: none
      return is_string || AsList(input) != nullptr || is_dict || is_undefined;
    case Test::kIterable:
      return is_string || is_dict || is_undefined || std::holds_alternative<const List*>(input) ||
             std::holds_alternative<const Loop*>(input);
    case Test::kTrue:
      return is_bool && std::get<bool>(input);
    default:  // kFalse
      return is_bool && !std::get<bool>(input);
  }
}

}  // namespace

absl::StatusOr<Value> ApplyFilter(Filter filter, const Value& input,
                                  const ArgumentValues& arguments, Workspace& workspace) {
  switch (filter) {
    case Filter::kToJson:
      return Json(input, arguments[0], workspace);
    case Filter::kLength:
      return Length(input, workspace);
    case Filter::kDefault:
      return Default(input, arguments, workspace);
    case Filter::kJoin:
      return Join(input, arguments[0], workspace);
    case Filter::kFirst:
    case Filter::kLast: {
      PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(input, workspace));
      if (items->empty()) return Undefined{"an item of an empty sequence"};
      return filter == Filter::kFirst ? items->front() : items->back();
    }
    case Filter::kList: {
      PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(input, workspace));
      PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(*items));
      return list;
    }
    case Filter::kItems:
      return ItemsFilter(input, workspace);
    default:
      return StringFilter(filter, input, arguments, workspace);
  }
}

absl::StatusOr<Value> CallMethod(Method method, const Value& object,
                                 const ArgumentValues& arguments, Workspace& workspace) {
  if (std::holds_alternative<Undefined>(object)) return TypeError("", object);
  switch (method) {
    case Method::kGet: {
      const auto* dict = std::get_if<const Dict*>(&object);
      if (dict == nullptr) return TypeError("has no method 'get'", object);
      PAGODA_ASSIGN_OR_RETURN(const auto found, FindKey(**dict, *arguments[0], workspace));
      return found.has_value() ? (*dict)->entries[*found].second : arguments[1].value_or(None{});
    }
    case Method::kItems:
      return View(object, DictPart::kItems, workspace);
    case Method::kKeys:
      return View(object, DictPart::kKeys, workspace);
    case Method::kValues:
      return View(object, DictPart::kValues, workspace);
    default:
      break;
  }
  const auto* text = std::get_if<String>(&object);
  if (text == nullptr) return TypeError("has none of the methods of a str", object);
  return StringMethod(method, **text, arguments, workspace);
}

absl::StatusOr<bool> ApplyTest(Test test, const Value& input, const std::optional<Value>& argument,
                               Workspace& workspace) {
  if (TakesArgument(test)) return TestAgainst(test, input, *argument, workspace);
  if (test == Test::kOdd || test == Test::kEven) return TestInteger(test, input, std::int64_t{2});
  return TestKind(test, input);
}

}  // namespace pagoda::text::jinja
