#include "text/jinja/string_methods.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/find_text.h"
#include "text/jinja/unicode_space.h"
#include "text/jinja/workspace.h"
#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

using String = const MarkedString*;

// Whether a character goes when stripping: blank space, or one of `set` when there is one.
bool IsStripped(std::string_view character, std::optional<std::string_view> set) {
  if (!set.has_value()) return IsSpace(ReadUtf8(character).code_point);
  return set->find(character) != std::string_view::npos;
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

char InCase(char c, bool upper) {
  if (upper) return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

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

absl::StatusOr<Value> ChangeCase(const MarkedString& text, Case wanted, Workspace& workspace) {
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(text.bytes.size()));
  MarkedString changed = text;
  for (std::size_t at = 0; at < changed.bytes.size(); ++at) {
    char& c = changed.bytes[at];
    if (static_cast<unsigned char>(c) >= 0x80) {
      return absl::UnimplementedError(
          "changing the case of a character outside ASCII is not supported");
    }
    c = InCase(c, wanted == Case::kUpper || (wanted == Case::kCapital && at == 0));
  }
  PAGODA_ASSIGN_OR_RETURN(String made, workspace.NewString(std::move(changed)));
  return made;
}

absl::StatusOr<Value> Replace(const MarkedString& text, const Replacement& replacement,
                              Workspace& workspace) {
  const auto* old_text = std::get_if<String>(&replacement.old_text);
  const auto* new_text = std::get_if<String>(&replacement.new_text);
  if (old_text == nullptr) return TypeError("cannot be replaced in a str", replacement.old_text);
  if (new_text == nullptr) return TypeError("cannot replace part of a str", replacement.new_text);
  if ((*old_text)->bytes.empty()) {
    return absl::UnimplementedError("replacing an empty string is not supported");
  }
  std::int64_t left = -1;  // below zero: all
  if (replacement.count.has_value() && !std::holds_alternative<None>(*replacement.count)) {
    const std::optional<std::int64_t> count = AsInteger(*replacement.count);
    if (!count.has_value()) return TypeError("cannot be a count", *replacement.count);
    left = *count;
  }
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(text.bytes.size() + (*old_text)->bytes.size()));
  PAGODA_ASSIGN_OR_RETURN(MarkedString * made, workspace.NewOpenString({}));
  PAGODA_RETURN_IF_ERROR(workspace.Hold(text.held_bytes()));
  std::size_t at = 0;
  for (; left != 0; --left) {
    const std::size_t found = FindText(text.bytes, (*old_text)->bytes, at);
    if (found == std::string_view::npos) break;
    PAGODA_RETURN_IF_ERROR(workspace.Hold((*new_text)->held_bytes()));
    made->AppendRange(text, at, found);
    made->Append(**new_text);
    at = found + (*old_text)->bytes.size();
  }
  made->AppendRange(text, at, text.bytes.size());
  return static_cast<String>(made);
}

}  // namespace pagoda::text::jinja
