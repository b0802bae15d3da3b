#include "text/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/tokenizer_json_rules.h"

namespace pagoda::text {
namespace {

using base::ToAbsl;
using base::TokenId;
using formats::JsonValue;

// The id of the token an entry names, by its spelling or as an object with a `content`.
absl::StatusOr<std::optional<TokenId>> ReadNamedToken(const JsonValue& root, std::string_view key,
                                                      const Vocabulary& vocabulary) {
  const std::optional<JsonValue> value = root.Find(key);
  if (!value.has_value() || value->is_null()) return std::nullopt;
  std::optional<std::string_view> spelling = value->AsString();
  if (!spelling.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(spelling, ReadText(*value, key, "content"));
  }
  const auto found = std::ranges::find(vocabulary.tokens, *spelling);
  if (found != vocabulary.tokens.end()) {
    return static_cast<TokenId>(found - vocabulary.tokens.begin());
  }
  return RefuseEntry(key, absl::StrCat("'", ToAbsl(*spelling), "' is not in the vocabulary"));
}

absl::Status CheckAddedTokens(const JsonValue& root, const Vocabulary& vocabulary) {
  constexpr std::string_view kEntry = "added_tokens_decoder";
  const std::optional<JsonValue> added = root.Find(kEntry);
  if (!added.has_value()) return absl::OkStatus();
  for (const formats::JsonMember& member : added->Members()) {
    TokenId id = 0;
    const char* const begin = member.key.data();
    const char* const end = begin + member.key.size();
    const auto [stop, error] = std::from_chars(begin, end, id);
    PAGODA_ASSIGN_OR_RETURN(const std::string_view content,
                            ReadText(member.value, kEntry, "content"));
    const bool is_id = error == std::errc() && stop == end;
    if (is_id && id < vocabulary.tokens.size() && vocabulary.tokens[id] == content) continue;
    return RefuseEntry(kEntry, absl::StrCat("'", ToAbsl(content), "' with id ", ToAbsl(member.key),
                                            " is not in the tokenizer.json"));
  }
  return absl::OkStatus();
}

absl::Status CheckPrefix(const JsonValue& root, const Vocabulary& vocabulary) {
  constexpr std::string_view kEntry = "add_prefix_space";
  using Prefix = SpaceMarks::Prefix;
  const bool is_marked = vocabulary.space_marks.has_value();
  const bool has_prefix = is_marked && vocabulary.space_marks->prefix != Prefix::kNone;
  PAGODA_ASSIGN_OR_RETURN(const bool wants_prefix, ReadFlag(root, kEntry, kEntry, has_prefix));
  if (wants_prefix == has_prefix) return absl::OkStatus();
  if (!is_marked) return RefuseEntry(kEntry, "true is not built");
  return RefuseEntry(
      kEntry,
      absl::StrCat(wants_prefix ? "true" : "false", ", but the tokenizer.json ",
                   has_prefix ? "puts a space before a text" : "puts no space before a text"));
}

absl::Status CheckSwitches(const JsonValue& root, const Vocabulary& vocabulary) {
  PAGODA_ASSIGN_OR_RETURN(const bool adds_eos,
                          ReadFlag(root, "add_eos_token", "add_eos_token", false));
  if (adds_eos) return RefuseEntry("add_eos_token", "true is not built");
  PAGODA_RETURN_IF_ERROR(CheckPrefix(root, vocabulary));
  PAGODA_ASSIGN_OR_RETURN(const bool adds_bos,
                          ReadFlag(root, "add_bos_token", "add_bos_token", vocabulary.adds_bos));
  if (adds_bos == vocabulary.adds_bos) return absl::OkStatus();
  return RefuseEntry("add_bos_token",
                     absl::StrCat(adds_bos ? "true" : "false", ", but the tokenizer.json ",
                                  vocabulary.adds_bos ? "adds a token before a text"
                                                      : "adds no token before a text"));
}

// A string, or a list of named templates of which the one called `default` counts.
absl::StatusOr<std::string> ReadTemplate(const JsonValue& root) {
  constexpr std::string_view kEntry = "chat_template";
  const std::optional<JsonValue> value = root.Find(kEntry);
  if (!value.has_value() || value->is_null()) return std::string();
  if (const auto text = value->AsString(); text.has_value()) return std::string(*text);
  std::string names;
  for (const JsonValue& each : value->Elements()) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view name, ReadText(each, kEntry, "name"));
    if (name == "default") {
      PAGODA_ASSIGN_OR_RETURN(const std::string_view text, ReadText(each, kEntry, "template"));
      return std::string(text);
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToAbsl(name));
  }
  return RefuseEntry(kEntry, absl::StrCat("found ", value->KindName(),
                                          " without one named "
                                          "'default' (",
                                          names, ")"));
}

absl::Status ReadAll(const JsonValue& root, Vocabulary& vocabulary, std::string& chat_template) {
  if (root.kind() != JsonValue::Kind::kObject) {
    return RefuseEntry("the file", absl::StrCat("found ", root.KindName(), ", expected an object"));
  }
  PAGODA_RETURN_IF_ERROR(CheckAddedTokens(root, vocabulary));
  PAGODA_RETURN_IF_ERROR(CheckSwitches(root, vocabulary));
  PAGODA_ASSIGN_OR_RETURN(const auto bos, ReadNamedToken(root, "bos_token", vocabulary));
  if (bos.has_value() && vocabulary.bos.has_value() && bos != vocabulary.bos) {
    return RefuseEntry(
        "bos_token",
        absl::StrCat("is token ", *bos, ", but the tokenizer.json adds ", *vocabulary.bos));
  }
  if (bos.has_value()) vocabulary.bos = bos;
  PAGODA_ASSIGN_OR_RETURN(const auto eos, ReadNamedToken(root, "eos_token", vocabulary));
  if (eos.has_value()) vocabulary.eos.push_back(*eos);
  PAGODA_ASSIGN_OR_RETURN(chat_template, ReadTemplate(root));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTokenizerConfig(const formats::JsonDocument& file, Vocabulary& vocabulary,
                                 std::string& chat_template) {
  absl::Status status = ReadAll(file.root(), vocabulary, chat_template);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(file.name(), ": ", status.message()));
}

}  // namespace pagoda::text
