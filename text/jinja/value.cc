#include "text/jinja/value.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/find_text.h"
#include "text/jinja/float_text.h"
#include "text/jinja/workspace.h"
#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

template <typename T>
const T* If(const Value& value) {
  return std::get_if<T>(&value);
}

using String = const MarkedString*;

// Wide enough that an integer and a float compare exactly.
std::optional<long double> AsNumber(const Value& value) {
  if (const auto* number = If<double>(value)) return *number;
  const std::optional<std::int64_t> integer = AsInteger(value);
  if (!integer.has_value()) return std::nullopt;
  return static_cast<long double>(*integer);
}

absl::StatusOr<bool> ListsEqual(const List& a, const List& b, Workspace& workspace) {
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(const bool equal, Equals(a.items[i], b.items[i], workspace));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> DictsEqual(const Dict& a, const Dict& b, Workspace& workspace) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    PAGODA_ASSIGN_OR_RETURN(const auto other, FindKey(b, key, workspace));
    if (!other.has_value()) return false;
    PAGODA_ASSIGN_OR_RETURN(const bool equal, Equals(value, b.entries[*other].second, workspace));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<int> OrderLists(const List& a, const List& b, Workspace& workspace) {
  const std::size_t shared = std::min(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < shared; ++i) {
    PAGODA_ASSIGN_OR_RETURN(const bool equal, Equals(a.items[i], b.items[i], workspace));
    if (!equal) return Order(a.items[i], b.items[i], workspace);
  }
  return a.items.size() < b.items.size() ? -1 : a.items.size() > b.items.size() ? 1 : 0;
}

absl::StatusOr<const std::vector<Value>*> Characters(const MarkedString& text,
                                                     Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.Spend(static_cast<std::int64_t>(text.bytes.size())));
  std::vector<Value> characters;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const std::size_t end = at + ReadUtf8(std::string_view(text.bytes).substr(at)).length;
    PAGODA_ASSIGN_OR_RETURN(const String character, workspace.NewString(text.Substring(at, end)));
    characters.emplace_back(character);
    at = end;
  }
  PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(std::move(characters)));
  return &list->items;
}

}  // namespace

std::string_view TypeName(const Value& value) {
  static constexpr std::string_view kNames[] = {"undefined", "NoneType", "bool",    "int",
                                                "float",     "str",      "list",    "dict",
                                                "namespace", "loop",     "function"};
  static constexpr std::string_view kListNames[] = {"list", "dict view", "generator"};
  if (const auto* list = If<const List*>(value)) {
    return kListNames[static_cast<std::size_t>((*list)->kind)];
  }
  return kNames[value.index()];
}

absl::Status TypeError(std::string_view what, const Value& value) {
  if (const auto* undefined = If<Undefined>(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", base::ToAbsl(undefined->what), "' is undefined"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a value of type ", base::ToAbsl(TypeName(value)), " ", base::ToAbsl(what)));
}

bool IsTruthy(const Value& value) {
  if (const auto* flag = If<bool>(value)) return *flag;
  if (const auto* integer = If<std::int64_t>(value)) return *integer != 0;
  if (const auto* number = If<double>(value)) return *number != 0;
  if (const auto* text = If<String>(value)) return !(*text)->bytes.empty();
  if (const auto* list = If<const List*>(value)) {
    return (*list)->kind == List::Kind::kStream || !(*list)->items.empty();
  }
  if (const auto* dict = If<const Dict*>(value)) return !(*dict)->entries.empty();
  return If<Namespace*>(value) != nullptr || If<const Loop*>(value) != nullptr ||
         If<Function>(value) != nullptr;
}

std::optional<std::int64_t> AsInteger(const Value& value) {
  if (const auto* flag = If<bool>(value)) return *flag ? 1 : 0;
  if (const auto* integer = If<std::int64_t>(value)) return *integer;
  return std::nullopt;
}

const List* AsList(const Value& value) {
  const auto* list = If<const List*>(value);
  return list != nullptr && (*list)->kind == List::Kind::kList ? *list : nullptr;
}

absl::StatusOr<bool> Equals(const Value& a, const Value& b, Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.Spend(1));
  if (If<double>(a) != nullptr || If<double>(b) != nullptr) return AsNumber(a) == AsNumber(b);
  const std::optional<std::int64_t> integer_a = AsInteger(a), integer_b = AsInteger(b);
  if (integer_a.has_value() || integer_b.has_value()) return integer_a == integer_b;
  if (a.index() != b.index()) return false;
  if (const auto* text = If<String>(a)) {
    const std::string& other = std::get<String>(b)->bytes;
    PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(std::min((*text)->bytes.size(), other.size())));
    return (*text)->bytes == other;
  }
  if (const auto* list = If<const List*>(a)) {
    const List& other = *std::get<const List*>(b);
    if ((*list)->kind == List::Kind::kList && other.kind == List::Kind::kList) {
      return ListsEqual(**list, other, workspace);
    }
    return *list == &other;
  }
  if (const auto* dict = If<const Dict*>(a)) {
    return DictsEqual(**dict, *std::get<const Dict*>(b), workspace);
  }
  if (const auto* space = If<Namespace*>(a)) return *space == std::get<Namespace*>(b);
  if (const auto* loop = If<const Loop*>(a)) return *loop == std::get<const Loop*>(b);
  if (const auto* function = If<Function>(a)) return *function == std::get<Function>(b);
  return true;  // both undefined, or both none
}

absl::StatusOr<int> Order(const Value& a, const Value& b, Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.Spend(1));
  const std::optional<std::int64_t> integer_a = AsInteger(a), integer_b = AsInteger(b);
  if (integer_a.has_value() && integer_b.has_value()) {
    return *integer_a < *integer_b ? -1 : *integer_a > *integer_b ? 1 : 0;
  }
  const auto number_a = AsNumber(a), number_b = AsNumber(b);
  if (number_a.has_value() && number_b.has_value()) {
    return *number_a < *number_b ? -1 : *number_a > *number_b ? 1 : 0;
  }
  // Bytes of UTF-8 are in the order of their code points.
  if (const auto *text_a = If<String>(a), *text_b = If<String>(b); text_a && text_b) {
    PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes((*text_a)->bytes.size()));
    return (*text_a)->bytes.compare((*text_b)->bytes);
  }
  if (const auto *list_a = AsList(a), *list_b = AsList(b); list_a && list_b) {
    return OrderLists(*list_a, *list_b, workspace);
  }
  const Value& culprit = If<Undefined>(b) != nullptr ? b : a;
  return TypeError(
      absl::StrCat("has no order beside ", base::ToAbsl(TypeName(If<Undefined>(b) ? a : b))),
      culprit);
}

absl::StatusOr<bool> Contains(const Value& haystack, const Value& needle, Workspace& workspace) {
  if (const auto* text = If<String>(haystack)) {
    const auto* part = If<String>(needle);
    if (part == nullptr) return TypeError("cannot be part of a str", needle);
    PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes((*text)->bytes.size() + (*part)->bytes.size()));
    return FindText((*text)->bytes, (*part)->bytes, 0) != std::string_view::npos;
  }
  if (const auto* list = If<const List*>(haystack)) {
    for (const Value& item : (*list)->items) {
      PAGODA_ASSIGN_OR_RETURN(const bool equal, Equals(item, needle, workspace));
      if (equal) return true;
    }
    return false;
  }
  if (const auto* dict = If<const Dict*>(haystack)) {
    if (If<const List*>(needle) != nullptr || If<const Dict*>(needle) != nullptr) {
      return TypeError("cannot be the key of a dict", needle);
    }
    PAGODA_ASSIGN_OR_RETURN(const auto found, FindKey(**dict, needle, workspace));
    return found.has_value();
  }
  if (If<Undefined>(haystack) != nullptr) return false;
  return TypeError("cannot be searched with 'in'", haystack);
}

absl::StatusOr<const MarkedString*> ToText(const Value& value, Workspace& workspace) {
  if (const auto* text = If<String>(value)) return *text;
  if (If<Undefined>(value) != nullptr) return workspace.NewString("");
  if (If<None>(value) != nullptr) return workspace.NewString("None");
  if (const auto* flag = If<bool>(value)) return workspace.NewString(*flag ? "True" : "False");
  if (const auto* integer = If<std::int64_t>(value)) {
    return workspace.NewString(base::ToStd(absl::AlphaNum(*integer).Piece()));
  }
  if (const auto* number = If<double>(value)) return workspace.NewString(FloatText(*number));
  return TypeError("cannot be written as text; the filter 'tojson' writes lists and dicts", value);
}

absl::StatusOr<const std::vector<Value>*> Items(const Value& value, Workspace& workspace) {
  static const std::vector<Value> kNoItems;
  if (If<Undefined>(value) != nullptr) return &kNoItems;
  if (const auto* list = If<const List*>(value)) return &(*list)->items;
  if (const auto* text = If<String>(value)) return Characters(**text, workspace);
  if (const auto* dict = If<const Dict*>(value)) {
    std::vector<Value> keys;
    for (const auto& [key, unused] : (*dict)->entries) keys.push_back(key);
    PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(std::move(keys)));
    return &list->items;
  }
  return TypeError("cannot be walked over", value);
}

absl::StatusOr<std::optional<std::size_t>> FindKey(const Dict& dict, const Value& key,
                                                   Workspace& workspace) {
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(const bool equal, Equals(dict.entries[i].first, key, workspace));
    if (equal) return i;
  }
  return std::nullopt;
}

}  // namespace pagoda::text::jinja
