// Steps are first put into words ("Digits, ByteLevel with its own rule"); the words of a whole
// sequence are then looked for among those whose meaning is known exactly.
#include "text/tokenizer_json_rules.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace pagoda::text {
namespace {

using base::ToAbsl;
using formats::JsonValue;

// Regular expressions as the models' files spell them.
constexpr std::string_view kGpt2Expressions[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kRuleStep = "ByteLevel with its own rule";
constexpr std::string_view kBytesStep = "ByteLevel";
constexpr std::string_view kDigitsStep = "Digits";

std::string SplitStep(std::string_view expression) {
  return absl::StrCat("Split at '", ToAbsl(expression), "'");
}

absl::StatusOr<std::string> ByteLevelStep(const JsonValue& step, std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "add_prefix_space", "trim_offsets", "use_regex"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const bool prefix, ReadFlag(step, entry, "add_prefix_space", true));
  if (prefix) return RefuseEntry(entry, "ByteLevel with add_prefix_space true is not built");
  PAGODA_ASSIGN_OR_RETURN(const bool own_rule, ReadFlag(step, entry, "use_regex", true));
  return std::string(own_rule ? kRuleStep : kBytesStep);
}

absl::StatusOr<std::string> DigitsStep(const JsonValue& step, std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "individual_digits"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const bool each, ReadFlag(step, entry, "individual_digits", false));
  if (!each) return RefuseEntry(entry, "Digits with individual_digits false is not built");
  return std::string(kDigitsStep);
}

absl::StatusOr<std::string> SplitStepOf(const JsonValue& step, std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "pattern", "behavior", "invert"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view behavior, ReadText(step, entry, "behavior"));
  PAGODA_ASSIGN_OR_RETURN(const bool inverted, ReadFlag(step, entry, "invert", false));
  if (behavior != "Isolated" || inverted) {
    return RefuseEntry(entry, absl::StrCat("Split with behavior '", ToAbsl(behavior), "', invert ",
                                           inverted ? "true" : "false",
                                           " is not built; known is 'Isolated', false"));
  }
  const std::optional<JsonValue> pattern = step.Find("pattern");
  const auto expression = pattern.has_value() ? pattern->Find("Regex") : std::nullopt;
  const auto text = expression.has_value() ? expression->AsString() : std::nullopt;
  if (!text.has_value()) return RefuseEntry(entry, "Split without a Regex is not built");
  return SplitStep(*text);
}

absl::StatusOr<std::string> DescribeStep(const JsonValue& step, std::string_view entry) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(step, entry, "type"));
  if (type == "ByteLevel") return ByteLevelStep(step, entry);
  if (type == "Digits") return DigitsStep(step, entry);
  if (type == "Split") return SplitStepOf(step, entry);
  return RefuseEntry(entry, absl::StrCat("the step '", ToAbsl(type),
                                         "' is not built; known are ByteLevel, Digits, Split"));
}

struct KnownSteps {
  std::string steps;
  std::string_view rule;
};
std::vector<KnownSteps> AllKnownSteps() {
  const auto split = [](std::string_view expression) {
    return absl::StrCat(SplitStep(expression), ", ", ToAbsl(kBytesStep));
  };
  return {{std::string(kRuleStep), "gpt-2"},
          {split(kGpt2Expressions[0]), "gpt-2"},
          {split(kGpt2Expressions[1]), "gpt-2"},
          {split(kLlama3Expression), "llama-bpe"},
          {split(kQwen2Expression), "qwen2"},
          {absl::StrCat(ToAbsl(kDigitsStep), ", ", ToAbsl(kRuleStep)), "smollm"}};
}

// The tokens of a TemplateProcessing: one before the text at most, none after it.
absl::StatusOr<std::optional<base::TokenId>> ReadTemplate(const JsonValue& step,
                                                          std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "single", "pair", "special_tokens"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  const std::optional<JsonValue> single = step.Find("single");
  if (!single.has_value()) return RefuseEntry(entry, "TemplateProcessing has no 'single'");
  std::optional<std::string_view> before;
  bool past_text = false;
  for (const JsonValue& piece : single->Elements()) {
    if (piece.Find("Sequence").has_value()) {
      past_text = true;
      continue;
    }
    const std::optional<JsonValue> special = piece.Find("SpecialToken");
    if (!special.has_value() || past_text || before.has_value()) {
      return RefuseEntry(entry,
                         "TemplateProcessing with other than one token before the text, "
                         "and none after it, is not built");
    }
    PAGODA_ASSIGN_OR_RETURN(before, ReadText(*special, entry, "id"));
  }
  if (!before.has_value()) return std::nullopt;
  const std::optional<JsonValue> tokens = step.Find("special_tokens");
  const auto named = tokens.has_value() ? tokens->Find(*before) : std::nullopt;
  const auto ids = named.has_value() ? named->Find("ids") : std::nullopt;
  if (!ids.has_value() || ids->Elements().size() != 1) {
    return RefuseEntry(entry, absl::StrCat("'", ToAbsl(*before),
                                           "' has not exactly one id among its special_tokens"));
  }
  PAGODA_ASSIGN_OR_RETURN(const base::TokenId id, ReadTokenId(ids->Elements()[0], entry));
  return id;
}

}  // namespace

absl::Status RefuseEntry(std::string_view entry, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(entry), ": ", ToAbsl(what)));
}

absl::Status CheckKeys(const JsonValue& object, std::string_view entry,
                       std::span<const std::string_view> known) {
  if (object.kind() != JsonValue::Kind::kObject) {
    return RefuseEntry(entry, absl::StrCat("found ", object.KindName(), ", expected an object"));
  }
  for (const formats::JsonMember& member : object.Members()) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    return RefuseEntry(entry, absl::StrCat("the entry '", ToAbsl(member.key), "' is not known"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ReadFlag(const JsonValue& object, std::string_view entry, std::string_view key,
                              bool absent) {
  const std::optional<JsonValue> value = object.Find(key);
  if (!value.has_value() || value->is_null()) return absent;
  const std::optional<bool> flag = value->AsBool();
  if (flag.has_value()) return *flag;
  return RefuseEntry(entry, absl::StrCat("'", ToAbsl(key), "' is ", value->KindName(),
                                         ", expected true or false"));
}

absl::StatusOr<std::string_view> ReadText(const JsonValue& object, std::string_view entry,
                                          std::string_view key) {
  const std::optional<JsonValue> value = object.Find(key);
  const auto text = value.has_value() ? value->AsString() : std::nullopt;
  if (text.has_value()) return *text;
  return RefuseEntry(
      entry, absl::StrCat("'", ToAbsl(key), "' is ",
                          value.has_value() ? value->KindName() : "absent", ", expected a string"));
}

absl::StatusOr<base::TokenId> ReadTokenId(const JsonValue& value, std::string_view entry) {
  const std::optional<std::uint64_t> id = value.AsUnsigned();
  if (id.has_value() && *id < std::numeric_limits<base::TokenId>::max()) {
    return static_cast<base::TokenId>(*id);
  }
  return RefuseEntry(entry, absl::StrCat("found ", value.KindName(), ", expected a token id"));
}

absl::StatusOr<std::vector<JsonValue>> StepsOf(const JsonValue& value, std::string_view entry,
                                               std::string_view list_key) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(value, entry, "type"));
  if (type != "Sequence") return std::vector<JsonValue>{value};
  const std::string_view known[] = {"type", list_key};
  PAGODA_RETURN_IF_ERROR(CheckKeys(value, entry, known));
  const std::optional<JsonValue> list = value.Find(list_key);
  if (!list.has_value() || list->kind() != JsonValue::Kind::kArray) {
    return RefuseEntry(entry, absl::StrCat("has no list '", ToAbsl(list_key), "'"));
  }
  return list->Elements();
}

absl::StatusOr<std::string> ReadPreTokenizer(const JsonValue& pre_tokenizer) {
  constexpr std::string_view kEntry = "pre_tokenizer";
  if (pre_tokenizer.is_null()) return RefuseEntry(kEntry, "null; text would not be split at all");
  PAGODA_ASSIGN_OR_RETURN(const std::vector<JsonValue> steps,
                          StepsOf(pre_tokenizer, kEntry, "pretokenizers"));
  std::string described;
  for (const JsonValue& step : steps) {
    PAGODA_ASSIGN_OR_RETURN(const std::string words, DescribeStep(step, kEntry));
    absl::StrAppend(&described, described.empty() ? "" : ", ", words);
  }
  for (const KnownSteps& known : AllKnownSteps()) {
    if (known.steps == described) return std::string(known.rule);
  }
  return RefuseEntry(kEntry, absl::StrCat("the steps (", described,
                                          ") are none of the rules built here: gpt-2, llama-bpe, "
                                          "qwen2, smollm"));
}

absl::StatusOr<Vocabulary::Normalizer> ReadNormalizer(const JsonValue& normalizer) {
  constexpr std::string_view kEntry = "normalizer";
  if (normalizer.is_null()) return Vocabulary::Normalizer::kNone;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<JsonValue> steps,
                          StepsOf(normalizer, kEntry, "normalizers"));
  auto result = Vocabulary::Normalizer::kNone;
  for (const JsonValue& step : steps) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(step, kEntry, "type"));
    if (type != "NFC") {
      return RefuseEntry(kEntry,
                         absl::StrCat("'", ToAbsl(type), "' is not built; known are null and NFC"));
    }
    result = Vocabulary::Normalizer::kNfc;
  }
  return result;
}

absl::StatusOr<std::optional<base::TokenId>> ReadPostProcessor(const JsonValue& post_processor) {
  constexpr std::string_view kEntry = "post_processor";
  std::optional<base::TokenId> bos;
  if (post_processor.is_null()) return bos;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<JsonValue> steps,
                          StepsOf(post_processor, kEntry, "processors"));
  for (const JsonValue& step : steps) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(step, kEntry, "type"));
    if (type == "ByteLevel") continue;  // moves offsets, adds nothing
    if (type != "TemplateProcessing" || bos.has_value()) {
      return RefuseEntry(kEntry, absl::StrCat("'", ToAbsl(type),
                                              "' is not built; known are ByteLevel and one "
                                              "TemplateProcessing"));
    }
    PAGODA_ASSIGN_OR_RETURN(bos, ReadTemplate(step, kEntry));
  }
  return bos;
}

absl::Status CheckDecoder(const JsonValue& decoder) {
  constexpr std::string_view kEntry = "decoder";
  // By its makers' rules null joins the tokens with spaces, in the letters that spell their bytes.
  if (decoder.is_null()) {
    return RefuseEntry(kEntry,
                       "null; replies would be the spelled tokens with a space between each two, "
                       "byte-level tokens need 'ByteLevel'");
  }
  PAGODA_ASSIGN_OR_RETURN(const std::vector<JsonValue> steps, StepsOf(decoder, kEntry, "decoders"));
  for (const JsonValue& step : steps) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(step, kEntry, "type"));
    if (type != "ByteLevel") {
      return RefuseEntry(kEntry,
                         absl::StrCat("'", ToAbsl(type), "' is not built; known is ByteLevel"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pagoda::text
