#include "text/jinja/workspace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace pagoda::text::jinja {
namespace {

int DepthOf(const Value& value) {
  if (const auto* list = std::get_if<const List*>(&value)) return (*list)->depth;
  if (const auto* dict = std::get_if<const Dict*>(&value)) return (*dict)->depth;
  return 0;
}

bool IsKey(const Value& value) {
  return std::holds_alternative<None>(value) || AsInteger(value).has_value() ||
         std::holds_alternative<const MarkedString*>(value);
}

}  // namespace

absl::Status Workspace::TooMuch(std::string_view bound, std::int64_t value) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the rendering passes ", base::ToAbsl(bound), " = ", value));
}

absl::Status Workspace::Hold(std::size_t bytes) {
  held_bytes_ += bytes;
  if (held_bytes_ <= kMaxWorkingBytes) return absl::OkStatus();
  return TooMuch("kMaxWorkingBytes", static_cast<std::int64_t>(kMaxWorkingBytes));
}

absl::StatusOr<MarkedString*> Workspace::NewOpenString(MarkedString text) {
  PAGODA_RETURN_IF_ERROR(Hold(text.held_bytes()));
  return &strings_.emplace_back(std::move(text));
}

absl::StatusOr<const MarkedString*> Workspace::NewString(MarkedString text) {
  return NewOpenString(std::move(text));
}

absl::StatusOr<const List*> Workspace::NewList(std::vector<Value> items, List::Kind kind) {
  PAGODA_RETURN_IF_ERROR(Hold(sizeof(List) + items.size() * sizeof(Value)));
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, DepthOf(item));
  if (++depth > kMaxValueDepth) return TooMuch("kMaxValueDepth", kMaxValueDepth);
  return &lists_.emplace_back(List{std::move(items), depth, kind});
}

absl::StatusOr<const Dict*> Workspace::NewDict(
    const std::vector<std::pair<Value, Value>>& entries) {
  PAGODA_RETURN_IF_ERROR(Hold(sizeof(Dict) + entries.size() * 2 * sizeof(Value)));
  Dict dict;
  int depth = 0;
  for (const auto& [key, value] : entries) {
    if (!IsKey(key)) return TypeError("cannot be the key of a dict", key);
    depth = std::max(depth, DepthOf(value));
    PAGODA_ASSIGN_OR_RETURN(const auto earlier, FindKey(dict, key, *this));
    if (earlier.has_value()) {
      dict.entries[*earlier].second = value;
    } else {
      dict.entries.emplace_back(key, value);
    }
  }
  dict.depth = depth + 1;
  if (dict.depth > kMaxValueDepth) return TooMuch("kMaxValueDepth", kMaxValueDepth);
  return &dicts_.emplace_back(std::move(dict));
}

absl::StatusOr<Namespace*> Workspace::NewNamespace() {
  PAGODA_RETURN_IF_ERROR(Hold(sizeof(Namespace)));
  return &namespaces_.emplace_back();
}

absl::StatusOr<Loop*> Workspace::NewLoop(const std::vector<Value>& items) {
  PAGODA_RETURN_IF_ERROR(Hold(sizeof(Loop)));
  return &loops_.emplace_back(Loop{&items, 0});
}

}  // namespace pagoda::text::jinja
