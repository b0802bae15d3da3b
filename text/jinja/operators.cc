#include "text/jinja/operators.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/builtins.h"
#include "text/jinja/workspace.h"
#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

absl::Status Overflow() {
  return absl::UnimplementedError("an integer does not fit 64 bits, which is not supported");
}

absl::StatusOr<Value> CalculateIntegers(ArithmeticOperator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case ArithmeticOperator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? absl::StatusOr<Value>(Overflow()) : result;
    case ArithmeticOperator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? absl::StatusOr<Value>(Overflow()) : result;
    case ArithmeticOperator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? absl::StatusOr<Value>(Overflow()) : result;
    case ArithmeticOperator::kFloorDivide:
    case ArithmeticOperator::kModulo:
      break;
  }
  if (b == 0) return absl::InvalidArgumentError("division by zero");
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) return Overflow();
  // Python rounds the quotient down, so that the remainder has the divisor's sign.
  const bool round_down = a % b != 0 && (a < 0) != (b < 0);
  if (op == ArithmeticOperator::kFloorDivide) return a / b - (round_down ? 1 : 0);
  return a % b + (round_down ? b : 0);
}

std::string_view Spelling(ArithmeticOperator op) {
  static constexpr std::array<std::string_view, 5> kSpellings = {"+", "-", "*", "//", "%"};
  return kSpellings[static_cast<std::size_t>(op)];
}

// The type whose methods a value has, of the types that have any.
std::optional<HostType> HostTypeOf(const Value& value) {
  if (AsInteger(value).has_value()) return HostType::kInteger;
  if (std::holds_alternative<const MarkedString*>(value)) return HostType::kString;
  if (AsList(value) != nullptr) return HostType::kList;
  if (std::holds_alternative<const Dict*>(value)) return HostType::kDict;
  return std::nullopt;
}

// An attribute that is not a key: a method used without a call is refused, anything else is
// undefined.
absl::StatusOr<Value> HostAttribute(const Value& value, std::string_view name) {
  const std::optional<HostType> type = HostTypeOf(value);
  if (!type.has_value() || !IsHostAttribute(*type, name)) return Undefined{name};
  return TypeError(absl::StrCat("has the method '", base::ToAbsl(name),
                                "', and using it without a call is not supported"),
                   value);
}

Value LoopAttribute(const Loop& loop, std::string_view name) {
  const auto item = [&](std::int64_t at) -> Value {
    if (at < 0 || at >= loop.length()) return Undefined{name};
    return (*loop.items)[static_cast<std::size_t>(at)];
  };
  if (name == "index") return loop.index + 1;
  if (name == "index0") return loop.index;
  if (name == "first") return loop.index == 0;
  if (name == "last") return loop.index + 1 == loop.length();
  if (name == "length") return loop.length();
  if (name == "revindex") return loop.length() - loop.index;
  if (name == "revindex0") return loop.length() - loop.index - 1;
  if (name == "previtem") return item(loop.index - 1);
  if (name == "nextitem") return item(loop.index + 1);
  if (name == "depth") return std::int64_t{1};
  if (name == "depth0") return std::int64_t{0};
  return Undefined{name};
}

absl::StatusOr<Value> NamedAttribute(const Namespace& space, std::string_view name,
                                     Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.Spend(static_cast<std::int64_t>(space.attributes.size()) / 8));
  for (const auto& [known, attribute] : space.attributes) {
    if (known == name) return attribute;
  }
  return Undefined{name};
}

absl::StatusOr<Value> NamedEntry(const Dict& dict, std::string_view name, Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.Spend(static_cast<std::int64_t>(dict.entries.size())));
  for (const auto& [key, value] : dict.entries) {
    const auto* text = std::get_if<const MarkedString*>(&key);
    if (text != nullptr && (*text)->bytes == name) return value;
  }
  return Undefined{name};
}

// Where each character of a string begins, and at last where the string ends.
absl::StatusOr<std::vector<std::size_t>> CharacterStarts(std::string_view text,
                                                         Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(text.size() * sizeof(std::size_t)));
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); at += ReadUtf8(text.substr(at)).length) {
    starts.push_back(at);
  }
  starts.push_back(text.size());
  return starts;
}

// The place of `index` in a sequence of `size`, or nothing.
std::optional<std::size_t> Place(std::int64_t index, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (index < -length || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + length : index);
}

absl::StatusOr<Value> CharacterAt(const MarkedString& text, std::int64_t index,
                                  Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::size_t> starts,
                          CharacterStarts(text.bytes, workspace));
  const std::optional<std::size_t> place = Place(index, starts.size() - 1);
  if (!place.has_value()) return Undefined{"a character past the end"};
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* made,
                          workspace.NewString(text.Substring(starts[*place], starts[*place + 1])));
  return made;
}

bool IsBound(const Value& value) {
  return std::holds_alternative<None>(value) || AsInteger(value).has_value();
}

// Python's slice.indices(): what the bounds mean for a sequence of this length.
struct SliceRange {
  std::int64_t start, stop, step;
};
absl::StatusOr<SliceRange> Resolve(const SliceBounds& bounds, std::int64_t length) {
  const std::array<std::optional<std::int64_t>, 3> given = {
      AsInteger(bounds.start), AsInteger(bounds.stop), AsInteger(bounds.step)};
  const std::int64_t step = given[2].value_or(1);
  if (step == 0) return absl::InvalidArgumentError("the step of a slice is zero");
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? length : length - 1;
  const auto place = [&](std::optional<std::int64_t> bound, std::int64_t absent) {
    if (!bound.has_value()) return absent;
    return std::clamp(*bound < 0 ? *bound + length : *bound, lowest, highest);
  };
  return SliceRange{place(given[0], step > 0 ? lowest : highest),
                    place(given[1], step > 0 ? highest : lowest), step};
}

}  // namespace

absl::StatusOr<Value> Calculate(ArithmeticOperator op, const Value& a, const Value& b,
                                Workspace& workspace) {
  const std::optional<std::int64_t> integer_a = AsInteger(a), integer_b = AsInteger(b);
  if (integer_a.has_value() && integer_b.has_value()) {
    return CalculateIntegers(op, *integer_a, *integer_b);
  }
  const List* list_a = AsList(a);
  const List* list_b = AsList(b);
  if (op == ArithmeticOperator::kAdd && list_a != nullptr && list_b != nullptr) {
    PAGODA_RETURN_IF_ERROR(
        workspace.Spend(static_cast<std::int64_t>(list_a->items.size() + list_b->items.size())));
    std::vector<Value> items = list_a->items;
    items.insert(items.end(), list_b->items.begin(), list_b->items.end());
    PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(std::move(items)));
    return list;
  }
  const bool b_undefined = std::holds_alternative<Undefined>(b);
  return TypeError(absl::StrCat("and one of type ", base::ToAbsl(TypeName(b_undefined ? a : b)),
                                " cannot be operands of '", base::ToAbsl(Spelling(op)), "'"),
                   b_undefined ? b : a);
}

absl::StatusOr<Value> Negate(const Value& value) {
  const std::optional<std::int64_t> integer = AsInteger(value);
  if (!integer.has_value()) return TypeError("cannot be negated", value);
  return CalculateIntegers(ArithmeticOperator::kSubtract, 0, *integer);
}

absl::StatusOr<bool> Compare(ComparisonOperator op, const Value& a, const Value& b,
                             Workspace& workspace) {
  using Op = ComparisonOperator;
  if (op == Op::kEqual || op == Op::kNotEqual) {
    PAGODA_ASSIGN_OR_RETURN(const bool equal, Equals(a, b, workspace));
    return equal == (op == Op::kEqual);
  }
  if (op == Op::kIn || op == Op::kNotIn) {
    PAGODA_ASSIGN_OR_RETURN(const bool contains, Contains(b, a, workspace));
    return contains == (op == Op::kIn);
  }
  PAGODA_ASSIGN_OR_RETURN(const int order, Order(a, b, workspace));
  switch (op) {
    case Op::kLess:
      return order < 0;
    case Op::kLessEqual:
      return order <= 0;
    case Op::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

absl::StatusOr<Value> Attribute(const Value& value, std::string_view name, Workspace& workspace) {
  if (std::holds_alternative<Undefined>(value)) return TypeError("", value);
  if (const auto* loop = std::get_if<const Loop*>(&value)) return LoopAttribute(**loop, name);
  if (auto* const* space = std::get_if<Namespace*>(&value)) {
    return NamedAttribute(**space, name, workspace);
  }
  PAGODA_ASSIGN_OR_RETURN(const Value host, HostAttribute(value, name));
  const auto* dict = std::get_if<const Dict*>(&value);
  return dict == nullptr ? host : NamedEntry(**dict, name, workspace);
}

absl::StatusOr<Value> Subscript(const Value& value, const Value& index, Workspace& workspace) {
  if (std::holds_alternative<Undefined>(value)) return TypeError("", value);
  const auto* name = std::get_if<const MarkedString*>(&index);
  if (const auto* dict = std::get_if<const Dict*>(&value)) {
    PAGODA_ASSIGN_OR_RETURN(const auto found, FindKey(**dict, index, workspace));
    if (found.has_value()) return (*dict)->entries[*found].second;
    if (name != nullptr) return HostAttribute(value, (*name)->bytes);
  } else if (name != nullptr) {
    return Attribute(value, (*name)->bytes, workspace);
  }
  const std::optional<std::int64_t> integer = AsInteger(index);
  const auto* text = std::get_if<const MarkedString*>(&value);
  if (integer.has_value() && text != nullptr) return CharacterAt(**text, *integer, workspace);
  const List* list = AsList(value);
  if (!integer.has_value() || list == nullptr) return Undefined{"a subscript"};
  const std::optional<std::size_t> place = Place(*integer, list->items.size());
  return place.has_value() ? list->items[*place] : Undefined{"an item past the end"};
}

absl::StatusOr<Value> Slice(const Value& value, const SliceBounds& bounds, Workspace& workspace) {
  const auto* text = std::get_if<const MarkedString*>(&value);
  const List* list = AsList(value);
  if (std::holds_alternative<Undefined>(value)) return TypeError("", value);
  const bool is_slice = IsBound(bounds.start) && IsBound(bounds.stop) && IsBound(bounds.step);
  if (!is_slice || (text == nullptr && list == nullptr)) return Undefined{"a slice"};
  std::vector<std::size_t> starts;
  if (text != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(starts, CharacterStarts((*text)->bytes, workspace));
  }
  const std::size_t size = text != nullptr ? starts.size() - 1 : list->items.size();
  PAGODA_RETURN_IF_ERROR(workspace.Spend(1 + static_cast<std::int64_t>(size) / 8));
  PAGODA_ASSIGN_OR_RETURN(const SliceRange range, Resolve(bounds, static_cast<std::int64_t>(size)));
  MarkedString characters;
  std::vector<Value> items;
  for (std::int64_t at = range.start; range.step > 0 ? at < range.stop : at > range.stop;) {
    const auto place = static_cast<std::size_t>(at);
    if (text != nullptr) {
      characters.AppendRange(**text, starts[place], starts[place + 1]);
    } else {
      items.push_back(list->items[place]);
    }
    if (__builtin_add_overflow(at, range.step, &at)) break;
  }
  if (text != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(const MarkedString* made, workspace.NewString(std::move(characters)));
    return made;
  }
  PAGODA_ASSIGN_OR_RETURN(const List* made, workspace.NewList(std::move(items)));
  return made;
}

}  // namespace pagoda::text::jinja
