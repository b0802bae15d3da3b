#include "text/tokenizer_json.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/tokenizer_json_marks.h"
#include "text/tokenizer_json_rules.h"

namespace pagoda::text {
namespace {

using base::ToAbsl;
using base::TokenId;
using formats::JsonMember;
using formats::JsonValue;
using Kind = Vocabulary::TokenKind;

// Far above any vocabulary, far below what would exhaust memory.
constexpr std::size_t kMaxTokens = std::size_t{1} << 20;

// Puts `spelling` at `id`, growing the tables; an id in between has no token until it is given one.
absl::Status PutToken(TokenId id, std::string_view spelling, Kind kind, Vocabulary& vocabulary) {
  if (id >= kMaxTokens) {
    return RefuseEntry("vocab",
                       absl::StrCat("token id ", id, " is past the bound of ", kMaxTokens));
  }
  if (id >= vocabulary.tokens.size()) {
    vocabulary.tokens.resize(id + 1);
    vocabulary.kinds.resize(id + 1, Kind::kUnused);
  }
  vocabulary.tokens[id] = spelling;
  vocabulary.kinds[id] = kind;
  return absl::OkStatus();
}

absl::Status ReadVocab(const JsonValue& vocab, Vocabulary& vocabulary) {
  for (const JsonMember& member : vocab.Members()) {
    PAGODA_ASSIGN_OR_RETURN(const TokenId id, ReadTokenId(member.value, "model.vocab"));
    if (id < vocabulary.tokens.size() && vocabulary.kinds[id] != Kind::kUnused) {
      return RefuseEntry("model.vocab",
                         absl::StrCat("id ", id, " is given to '", vocabulary.tokens[id],
                                      "' and to '", ToAbsl(member.key), "'"));
    }
    PAGODA_RETURN_IF_ERROR(PutToken(id, member.key, Kind::kNormal, vocabulary));
  }
  return absl::OkStatus();
}

// A merge is "left right", or a list of the two.
absl::Status ReadMerges(const JsonValue& merges, Vocabulary& vocabulary) {
  for (const JsonValue& merge : merges.Elements()) {
    if (const auto text = merge.AsString(); text.has_value()) {
      vocabulary.merges.emplace_back(*text);
      continue;
    }
    const std::vector<JsonValue> pair = merge.Elements();
    const auto left = pair.size() == 2 ? pair[0].AsString() : std::nullopt;
    const auto right = pair.size() == 2 ? pair[1].AsString() : std::nullopt;
    if (!left.has_value() || !right.has_value()) {
      return RefuseEntry("model.merges", absl::StrCat("merge ", vocabulary.merges.size(),
                                                      " is neither a string nor a pair of them"));
    }
    vocabulary.merges.push_back(absl::StrCat(ToAbsl(*left), " ", ToAbsl(*right)));
  }
  return absl::OkStatus();
}

// Entries of the model that would change ids and are not built.
absl::Status CheckModelSwitches(const JsonValue& model) {
  constexpr std::string_view kEntry = "model";
  constexpr std::string_view kKnown[] = {
      "type",     "dropout",       "unk_token",     "continuing_subword_prefix",
      "fuse_unk", "byte_fallback", "ignore_merges", "end_of_word_suffix",
      "vocab",    "merges"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(model, kEntry, kKnown));
  if (model.Find("type").has_value()) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(model, kEntry, "type"));
    if (type != "BPE") {
      return RefuseEntry("model.type",
                         absl::StrCat("'", ToAbsl(type), "' is not built; known is BPE"));
    }
  }
  for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::optional<JsonValue> value = model.Find(affix);
    if (!value.has_value() || value->is_null() || value->AsString() == "") continue;
    return RefuseEntry(absl::StrCat("model.", ToAbsl(affix)), "is not built; known is null");
  }
  const std::optional<JsonValue> dropout = model.Find("dropout");
  if (!dropout.has_value() || dropout->is_null() || dropout->AsNumber() == 0.0) {
    return absl::OkStatus();
  }
  return RefuseEntry("model.dropout", "is not built: encoding would depend on chance");
}

bool IsByteSpelling(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
}

// With every byte in the vocabulary nothing is ever unknown.
absl::Status CheckUnknownToken(const JsonValue& model, const Vocabulary& vocabulary) {
  const std::optional<JsonValue> unknown = model.Find("unk_token");
  if (!unknown.has_value() || unknown->is_null()) return absl::OkStatus();
  constexpr std::size_t kBytes = 256;
  std::size_t num_characters = 0;  // tokens of one character of the alphabet
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    const bool is_one = token.size() == 1 || (token.size() == 2 && (token[0] & 0x80) != 0);
    num_characters += vocabulary.kinds[id] == Kind::kNormal && is_one ? 1 : 0;
  }
  if (num_characters >= kBytes) return absl::OkStatus();
  return RefuseEntry("model.unk_token",
                     absl::StrCat("is not null, and the vocabulary has ", num_characters,
                                  " of the 256 bytes: unknown tokens are not built"));
}

absl::Status ReadModel(const JsonValue& model, Vocabulary& vocabulary) {
  PAGODA_RETURN_IF_ERROR(CheckModelSwitches(model));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.ignores_merges,
                          ReadFlag(model, "model", "ignore_merges", false));
  PAGODA_ASSIGN_OR_RETURN(const bool byte_fallback,
                          ReadFlag(model, "model", "byte_fallback", false));
  const std::optional<JsonValue> vocab = model.Find("vocab"), merges = model.Find("merges");
  if (!vocab.has_value() || vocab->kind() != JsonValue::Kind::kObject) {
    return RefuseEntry("model.vocab", "is no object of tokens and ids");
  }
  if (!merges.has_value() || merges->kind() != JsonValue::Kind::kArray) {
    return RefuseEntry("model.merges", "is no list");
  }
  PAGODA_RETURN_IF_ERROR(ReadVocab(*vocab, vocabulary));
  if (byte_fallback) {
    for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
      if (IsByteSpelling(vocabulary.tokens[id])) vocabulary.kinds[id] = Kind::kByte;
    }
    vocabulary.space_marks.emplace();
  } else {
    PAGODA_RETURN_IF_ERROR(CheckUnknownToken(model, vocabulary));
  }
  return ReadMerges(*merges, vocabulary);
}

absl::Status ReadAddedToken(const JsonValue& token, Vocabulary& vocabulary) {
  constexpr std::string_view kEntry = "added_tokens";
  constexpr std::string_view kKnown[] = {"id",     "content", "single_word", "lstrip",
                                         "rstrip", "special", "normalized"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(token, kEntry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view content, ReadText(token, kEntry, "content"));
  const std::string entry = absl::StrCat(ToAbsl(kEntry), ": '", ToAbsl(content), "'");
  const std::optional<JsonValue> id_value = token.Find("id");
  if (!id_value.has_value()) return RefuseEntry(entry, "has no id");
  PAGODA_ASSIGN_OR_RETURN(const TokenId id, ReadTokenId(*id_value, entry));
  PAGODA_ASSIGN_OR_RETURN(const bool single_word, ReadFlag(token, entry, "single_word", false));
  if (single_word) return RefuseEntry(entry, "single_word true is not built");
  PAGODA_ASSIGN_OR_RETURN(const bool special, ReadFlag(token, entry, "special", false));
  Vocabulary::Finding finding{.token = id};
  PAGODA_ASSIGN_OR_RETURN(finding.strips_left, ReadFlag(token, entry, "lstrip", false));
  PAGODA_ASSIGN_OR_RETURN(finding.strips_right, ReadFlag(token, entry, "rstrip", false));
  PAGODA_ASSIGN_OR_RETURN(finding.normalized, ReadFlag(token, entry, "normalized", !special));
  if (id < vocabulary.tokens.size() && vocabulary.kinds[id] != Kind::kUnused &&
      vocabulary.tokens[id] != content) {
    return RefuseEntry(entry,
                       absl::StrCat("its id ", id, " belongs to '", vocabulary.tokens[id], "'"));
  }
  if (finding.strips_left || finding.strips_right || finding.normalized) {
    vocabulary.findings.push_back(finding);
  }
  return PutToken(id, content, special ? Kind::kControl : Kind::kUserDefined, vocabulary);
}

absl::Status ReadAll(const JsonValue& root, Vocabulary& vocabulary) {
  // How a text would be cut or filled up is the caller's business, not the model's.
  constexpr std::string_view kKnown[] = {"version",        "truncation", "padding",
                                         "added_tokens",   "normalizer", "pre_tokenizer",
                                         "post_processor", "decoder",    "model"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(root, "the file", kKnown));
  for (const std::string_view key :
       {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model"}) {
    if (!root.Find(key).has_value()) return RefuseEntry(key, "is absent");
  }
  const JsonValue model = *root.Find("model");
  PAGODA_RETURN_IF_ERROR(ReadModel(model, vocabulary));
  const std::optional<JsonValue> added = root.Find("added_tokens");
  if (added.has_value()) {
    for (const JsonValue& token : added->Elements()) {
      PAGODA_RETURN_IF_ERROR(ReadAddedToken(token, vocabulary));
    }
  }
  PAGODA_ASSIGN_OR_RETURN(vocabulary.bos, ReadPostProcessor(*root.Find("post_processor")));
  vocabulary.adds_bos = vocabulary.bos.has_value();
  if (vocabulary.space_marks.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(vocabulary.space_marks, ReadSpaceMarks(root));
    return absl::OkStatus();
  }
  PAGODA_ASSIGN_OR_RETURN(vocabulary.normalizer, ReadNormalizer(*root.Find("normalizer")));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.pre_tokenizer, ReadPreTokenizer(*root.Find("pre_tokenizer")));
  return CheckDecoder(*root.Find("decoder"));
}

}  // namespace

absl::StatusOr<Vocabulary> ReadTokenizerJson(const formats::JsonDocument& file) {
  Vocabulary vocabulary;
  const absl::Status status = ReadAll(file.root(), vocabulary);
  if (status.ok()) return vocabulary;
  return absl::Status(status.code(), absl::StrCat(file.name(), ": ", status.message()));
}

}  // namespace pagoda::text
