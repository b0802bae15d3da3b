#include "text/tokenizer_json_marks.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/space_marks.h"
#include "text/tokenizer_json_rules.h"

namespace pagoda::text {
namespace {

using base::ToAbsl;
using formats::JsonValue;
using Prefix = SpaceMarks::Prefix;

constexpr std::string_view kNormalizer = "normalizer";
constexpr std::string_view kPreTokenizer = "pre_tokenizer";
constexpr std::string_view kDecoder = "decoder";

absl::StatusOr<std::string> DescribeReplace(const JsonValue& step, std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "pattern", "content"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view content, ReadText(step, entry, "content"));
  const std::optional<JsonValue> pattern = step.Find("pattern");
  const auto literal = pattern.has_value() ? pattern->Find("String") : std::nullopt;
  const auto text = literal.has_value() ? literal->AsString() : std::nullopt;
  if (!text.has_value()) return RefuseEntry(entry, "Replace without a String is not built");
  return absl::StrCat("Replace '", ToAbsl(*text), "' by '", ToAbsl(content), "'");
}

absl::StatusOr<std::string> DescribePrepend(const JsonValue& step, std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "prepend"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view prepend, ReadText(step, entry, "prepend"));
  return absl::StrCat("Prepend '", ToAbsl(prepend), "'");
}

absl::StatusOr<std::string> DescribeStrip(const JsonValue& step, std::string_view entry) {
  constexpr std::string_view kKnown[] = {"type", "content", "start", "stop"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view content, ReadText(step, entry, "content"));
  std::string described = absl::StrCat("Strip '", ToAbsl(content), "'");
  for (const std::string_view key : {"start", "stop"}) {
    const std::optional<JsonValue> value = step.Find(key);
    const auto count = value.has_value() ? value->AsUnsigned() : std::nullopt;
    if (!count.has_value()) {
      return RefuseEntry(entry, absl::StrCat("Strip: '", ToAbsl(key), "' is no count"));
    }
    absl::StrAppend(&described, " ", *count);
  }
  return described;
}

absl::StatusOr<std::string> DescribeStep(const JsonValue& step, std::string_view entry) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view type, ReadText(step, entry, "type"));
  if (type == "Replace") return DescribeReplace(step, entry);
  if (type == "Prepend") return DescribePrepend(step, entry);
  if (type == "Strip") return DescribeStrip(step, entry);
  constexpr std::string_view kKnown[] = {"type"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, entry, kKnown));
  return std::string(type);
}

// The steps of a Sequence, or of the one that stands alone, in words.
absl::StatusOr<std::string> Describe(const JsonValue& value, std::string_view entry,
                                     std::string_view list_key) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<JsonValue> steps, StepsOf(value, entry, list_key));
  std::string described;
  for (const JsonValue& step : steps) {
    PAGODA_ASSIGN_OR_RETURN(const std::string words, DescribeStep(step, entry));
    absl::StrAppend(&described, described.empty() ? "" : ", ", words);
  }
  return described;
}

std::string MarkStep() { return absl::StrCat("Replace ' ' by '", ToAbsl(kSpaceMark), "'"); }

// Nothing when no normalizer marks spaces.
absl::StatusOr<std::optional<Prefix>> ReadNormalizerMarks(const JsonValue& normalizer) {
  if (normalizer.is_null()) return std::nullopt;
  PAGODA_ASSIGN_OR_RETURN(const std::string steps,
                          Describe(normalizer, kNormalizer, "normalizers"));
  const std::string prefixed = absl::StrCat("Prepend '", ToAbsl(kSpaceMark), "', ", MarkStep());
  if (steps.empty()) return std::nullopt;
  if (steps == prefixed) return Prefix::kEach;
  if (steps == MarkStep()) return Prefix::kNone;
  return RefuseEntry(
      kNormalizer, absl::StrCat("the steps (", steps, ") are not built; known with byte_fallback ",
                                "are null, (", prefixed, ") and (", MarkStep(), ")"));
}

absl::StatusOr<Prefix> ReadMetaspace(const JsonValue& step) {
  constexpr std::string_view kKnown[] = {"type", "replacement", "prepend_scheme",
                                         "add_prefix_space", "split"};
  PAGODA_RETURN_IF_ERROR(CheckKeys(step, kPreTokenizer, kKnown));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view mark,
                          ReadText(step, kPreTokenizer, "replacement"));
  if (mark != kSpaceMark) {
    return RefuseEntry(kPreTokenizer, absl::StrCat("Metaspace with replacement '", ToAbsl(mark),
                                                   "' is not built; known is U+2581"));
  }
  PAGODA_ASSIGN_OR_RETURN(const bool splits, ReadFlag(step, kPreTokenizer, "split", true));
  if (splits) return RefuseEntry(kPreTokenizer, "Metaspace with split true is not built");
  PAGODA_ASSIGN_OR_RETURN(const bool prefix,
                          ReadFlag(step, kPreTokenizer, "add_prefix_space", true));
  std::string_view scheme = "always";
  if (step.Find("prepend_scheme").has_value()) {
    PAGODA_ASSIGN_OR_RETURN(scheme, ReadText(step, kPreTokenizer, "prepend_scheme"));
  }
  if (!prefix && scheme != "never") {
    return RefuseEntry(kPreTokenizer, absl::StrCat("Metaspace has add_prefix_space false and ",
                                                   "prepend_scheme '", ToAbsl(scheme), "'"));
  }
  if (scheme == "always") return Prefix::kEach;
  if (scheme == "first") return Prefix::kFirst;
  if (scheme == "never") return Prefix::kNone;
  return RefuseEntry(kPreTokenizer, absl::StrCat("Metaspace with prepend_scheme '", ToAbsl(scheme),
                                                 "' is not built; known are always, first, never"));
}

// Returns: whether a space that begins the text is left out.
absl::StatusOr<bool> ReadDecoder(const JsonValue& decoder) {
  if (decoder.is_null()) {
    return RefuseEntry(kDecoder, "null; replies would be the spelled tokens with spaces between");
  }
  PAGODA_ASSIGN_OR_RETURN(const std::string steps, Describe(decoder, kDecoder, "decoders"));
  const std::string joined =
      absl::StrCat("Replace '", ToAbsl(kSpaceMark), "' by ' ', ByteFallback, Fuse");
  const std::string stripped = joined + ", Strip ' ' 1 0";
  if (steps == stripped) return true;
  if (steps == joined) return false;
  return RefuseEntry(
      kDecoder, absl::StrCat("the steps (", steps, ") are not built; known with byte_fallback ",
                             "are (", stripped, "), or without the last"));
}

}  // namespace

absl::StatusOr<SpaceMarks> ReadSpaceMarks(const JsonValue& root) {
  SpaceMarks marks;
  PAGODA_ASSIGN_OR_RETURN(const std::optional<Prefix> normalizer,
                          ReadNormalizerMarks(*root.Find(kNormalizer)));
  const JsonValue pre_tokenizer = *root.Find(kPreTokenizer);
  marks.is_normalizer = normalizer.has_value();
  if (normalizer.has_value() != pre_tokenizer.is_null()) {
    return RefuseEntry(kPreTokenizer,
                       "with byte_fallback, spaces are marked either by a normalizer or by a "
                       "Metaspace pre-tokenizer; found both or neither");
  }
  if (normalizer.has_value()) {
    marks.prefix = *normalizer;
  } else {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view type,
                            ReadText(pre_tokenizer, kPreTokenizer, "type"));
    if (type != "Metaspace") {
      return RefuseEntry(kPreTokenizer, absl::StrCat("'", ToAbsl(type), "' is not built; known ",
                                                     "with byte_fallback is Metaspace"));
    }
    PAGODA_ASSIGN_OR_RETURN(marks.prefix, ReadMetaspace(pre_tokenizer));
  }
  PAGODA_ASSIGN_OR_RETURN(marks.strips_first_space, ReadDecoder(*root.Find(kDecoder)));
  return marks;
}

}  // namespace pagoda::text
