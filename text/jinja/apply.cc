#include "text/jinja/apply.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "text/jinja/find_text.h"
#include "text/jinja/json_text.h"
#include "text/jinja/unicode_space.h"
#include "text/jinja/workspace.h"
#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

using String = const MarkedString*;

// --- Strings ---

enum class Sides : std::uint8_t { kLeft, kRight, kBoth };

// Whether a character goes when stripping: blank space, or one of `set` when there is one.
bool IsStripped(std::string_view character, std::optional<std::string_view> set) {
  if (!set.has_value()) return IsSpace(ReadUtf8(character).code_point);
  return set->find(character) != std::string_view::npos;
}

absl::StatusOr<Value> Strip(const MarkedString& text, Sides sides, const std::optional<Value>& set,
                            Workspace& workspace) {
  std::optional<std::string_view> characters;
  if (set.has_value() && !std::holds_alternative<None>(*set)) {
    const auto* given = std::get_if<String>(&*set);
    if (given == nullptr) return TypeError("cannot be the characters to strip", *set);
    characters = (*given)->bytes;
  }
  const std::string_view all = text.bytes;
  // A set is searched for each character that goes.
  const std::size_t set_bytes = characters.value_or("").size();
  PAGODA_RETURN_IF_ERROR(workspace.Spend(static_cast<std::int64_t>(set_bytes)));
  std::size_t begin = 0, end = all.size();
  while (sides != Sides::kRight && begin < end) {
    const std::size_t length = ReadUtf8(all.substr(begin)).length;
    if (!IsStripped(all.substr(begin, length), characters)) break;
    PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(set_bytes));
    begin += length;
  }
  while (sides != Sides::kLeft && begin < end) {
    const std::string_view last = LastCharacter(all.substr(begin, end - begin));
    if (!IsStripped(last, characters)) break;
    PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(set_bytes));
    end -= last.size();
  }
  PAGODA_ASSIGN_OR_RETURN(String made, workspace.NewString(text.Substring(begin, end)));
  return made;
}

absl::StatusOr<Value> SplitAtSpaces(const MarkedString& text, Workspace& workspace) {
  const std::string_view all = text.bytes;
  std::vector<Value> parts;
  for (std::size_t at = LeadingSpaceBytes(all); at < all.size();
       at += LeadingSpaceBytes(all.substr(at))) {
    std::size_t end = at;
    while (end < all.size()) {
      const Utf8Unit unit = ReadUtf8(all.substr(end));
      if (IsSpace(unit.code_point)) break;
      end += unit.length;
    }
    PAGODA_ASSIGN_OR_RETURN(String part, workspace.NewString(text.Substring(at, end)));
    parts.emplace_back(part);
    at = end;
  }
  PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(std::move(parts)));
  return list;
}

absl::StatusOr<Value> Split(const MarkedString& text, const std::optional<Value>& separator,
                            Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(text.bytes.size()));
  if (!separator.has_value() || std::holds_alternative<None>(*separator)) {
    return SplitAtSpaces(text, workspace);
  }
  const auto* between = std::get_if<String>(&*separator);
  if (between == nullptr) return TypeError("cannot be a separator", *separator);
  const std::string& needle = (*between)->bytes;
  if (needle.empty()) return absl::InvalidArgumentError("the separator of 'split' is empty");
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(needle.size()));
  std::vector<Value> parts;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t found = FindText(text.bytes, needle, at);
    const bool is_last = found == std::string_view::npos;
    const std::size_t end = is_last ? text.bytes.size() : found;
    PAGODA_ASSIGN_OR_RETURN(String part, workspace.NewString(text.Substring(at, end)));
    parts.emplace_back(part);
    at = is_last ? found : found + needle.size();
  }
  PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(std::move(parts)));
  return list;
}

// --- Filters ---

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
  if (const auto* list = std::get_if<const List*>(&input)) {
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

}  // namespace

absl::StatusOr<Value> ApplyFilter(Filter filter, const Value& input,
                                  const ArgumentValues& arguments, Workspace& workspace) {
  switch (filter) {
    case Filter::kTrim: {
      PAGODA_ASSIGN_OR_RETURN(String text, ToText(input, workspace));
      return Strip(*text, Sides::kBoth, arguments[0], workspace);
    }
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
    case Filter::kString: {
      PAGODA_ASSIGN_OR_RETURN(String text, ToText(input, workspace));
      return text;
    }
    case Filter::kList: {
      PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(input, workspace));
      PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(*items));
      return list;
    }
  }
  return absl::InternalError("no such filter");
}

absl::StatusOr<Value> CallMethod(Method method, const Value& object,
                                 const ArgumentValues& arguments, Workspace& workspace) {
  if (method == Method::kGet) {
    const auto* dict = std::get_if<const Dict*>(&object);
    if (dict == nullptr) return TypeError("has no method 'get'", object);
    PAGODA_ASSIGN_OR_RETURN(const auto found, FindKey(**dict, *arguments[0], workspace));
    return found.has_value() ? (*dict)->entries[*found].second : arguments[1].value_or(None{});
  }
  const auto* holder = std::get_if<String>(&object);
  if (holder == nullptr) return TypeError("has none of the methods of a str", object);
  const MarkedString& text = **holder;
  switch (method) {
    case Method::kStrip:
      return Strip(text, Sides::kBoth, arguments[0], workspace);
    case Method::kLstrip:
      return Strip(text, Sides::kLeft, arguments[0], workspace);
    case Method::kRstrip:
      return Strip(text, Sides::kRight, arguments[0], workspace);
    case Method::kSplit:
      return Split(text, arguments[0], workspace);
    default:
      break;
  }
  const auto* part = std::get_if<String>(&*arguments[0]);
  if (part == nullptr) return TypeError("cannot be looked for in a str", *arguments[0]);
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes((*part)->bytes.size()));
  return method == Method::kStartsWith ? text.bytes.starts_with((*part)->bytes)
                                       : text.bytes.ends_with((*part)->bytes);
}

bool ApplyTest(Test test, const Value& input) {
  const bool is_undefined = std::holds_alternative<Undefined>(input);
  const bool is_bool = std::holds_alternative<bool>(input);
  const bool is_integer = std::holds_alternative<std::int64_t>(input);
  const bool is_string = std::holds_alternative<String>(input);
  const bool is_dict = std::holds_alternative<const Dict*>(input);
  const bool is_list = std::holds_alternative<const List*>(input);
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
    case Test::kNumber:
      return is_integer || is_bool;
    case Test::kMapping:
      return is_dict;
    case Test::kSequence:  // an undefined value has a length and items: none
      return is_string || is_list || is_dict || is_undefined;
    case Test::kIterable:
      return is_string || is_list || is_dict || is_undefined ||
             std::holds_alternative<const Loop*>(input);
    case Test::kTrue:
      return is_bool && std::get<bool>(input);
    case Test::kFalse:
      return is_bool && !std::get<bool>(input);
  }
  return false;
}

}  // namespace pagoda::text::jinja
