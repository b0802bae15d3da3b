#include "text/gguf_vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/make_tokenizer.h"
#include "text/tokenizer.h"

namespace pagoda::text {
namespace {

using formats::GgufFile;

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kKinds = "tokenizer.ggml.token_type";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kBos = "tokenizer.ggml.bos_token_id";
constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token";
constexpr std::string_view kAddSpacePrefix = "tokenizer.ggml.add_space_prefix";

// Each of these ends a reply: of the text, of a turn, of a message.
constexpr std::string_view kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                      "tokenizer.ggml.eom_token_id"};
constexpr std::string_view kByteLevel = "gpt2";
constexpr std::string_view kSentencePiece = "llama";
// Switches that would change ids; nothing here does any of it.
constexpr std::string_view kMustBeFalse[] = {"tokenizer.ggml.add_eos_token",
                                             "tokenizer.ggml.add_sep_token",
                                             "tokenizer.ggml.remove_extra_whitespaces"};
constexpr std::string_view kOfNoEffect[] = {"tokenizer.huggingface.json"};

bool IsKnownEntry(std::string_view key) {
  constexpr std::string_view kRead[] = {kModel,  kPre, kTokens, kKinds,         kMerges,
                                        kScores, kBos, kAddBos, kAddSpacePrefix};
  const auto among = [key](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  // Ids that only name a token change nothing by themselves.
  return among(kRead) || among(kMustBeFalse) || among(kOfNoEffect) ||
         key.starts_with("tokenizer.chat_template") || key.ends_with("_token_id") ||
         key.ends_with("_token_ids");
}

absl::StatusOr<bool> ReadFlag(const GgufFile& file, std::string_view key, bool absent) {
  if (file.Find(key) == nullptr) return absent;
  return file.Bool(key);
}

absl::Status CheckIsFalse(const GgufFile& file, std::string_view key) {
  PAGODA_ASSIGN_OR_RETURN(const bool value, ReadFlag(file, key, false));
  if (!value) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(base::ToAbsl(key), " is true; only false is built for this vocabulary"));
}

absl::Status CheckEntries(const GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with("tokenizer.") || IsKnownEntry(key)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has an entry that this tokenizer does not know and so cannot honour: ",
        base::ToAbsl(key)));
  }
  for (const std::string_view key : kMustBeFalse) PAGODA_RETURN_IF_ERROR(CheckIsFalse(file, key));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChoosePreTokenizer(const GgufFile& file,
                                               std::optional<std::string_view> named) {
  if (named.has_value()) return std::string(*named);
  if (file.Find(kPre) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file does not say how text is split before merging (", base::ToAbsl(kPre),
                     "); name the model's pre-tokenizer to load it"));
  }
  PAGODA_ASSIGN_OR_RETURN(const std::string_view in_file, file.String(kPre));
  return std::string(in_file);
}

absl::StatusOr<std::vector<Vocabulary::TokenKind>> ReadKinds(const GgufFile& file) {
  constexpr auto kFirst = static_cast<std::uint64_t>(Vocabulary::TokenKind::kNormal);
  constexpr auto kLast = static_cast<std::uint64_t>(Vocabulary::TokenKind::kByte);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> numbers, file.Unsigneds(kKinds));
  std::vector<Vocabulary::TokenKind> kinds;
  kinds.reserve(numbers.size());
  for (const std::uint64_t number : numbers) {
    if (number < kFirst || number > kLast) {
      return absl::InvalidArgumentError(absl::StrCat(base::ToAbsl(kKinds), "[", kinds.size(),
                                                     "] is ", number, "; expected ", kFirst, " to ",
                                                     kLast));
    }
    kinds.push_back(static_cast<Vocabulary::TokenKind>(number));
  }
  return kinds;
}

absl::StatusOr<std::optional<base::TokenId>> ReadId(const GgufFile& file, std::string_view key) {
  if (file.Find(key) == nullptr) return std::nullopt;
  PAGODA_ASSIGN_OR_RETURN(const std::uint64_t id, file.Unsigned(key));
  if (id > std::numeric_limits<base::TokenId>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(base::ToAbsl(key), " is ", id, ", which is no token id"));
  }
  return static_cast<base::TokenId>(id);
}

absl::Status ReadByteLevel(const GgufFile& file, std::optional<std::string_view> pre_tokenizer,
                           Vocabulary& vocabulary) {
  PAGODA_RETURN_IF_ERROR(CheckIsFalse(file, kAddSpacePrefix));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.pre_tokenizer, ChoosePreTokenizer(file, pre_tokenizer));
  PAGODA_ASSIGN_OR_RETURN(const auto merges, file.Strings(kMerges));
  vocabulary.merges.assign(merges.begin(), merges.end());
  // What these rules' own tokenizers do and a GGUF file has no entry for, or, the last, had none
  // for at first.
  vocabulary.ignores_merges = vocabulary.pre_tokenizer == "llama-bpe";
  if (vocabulary.pre_tokenizer == "qwen2") {
    vocabulary.normalizer = Vocabulary::Normalizer::kNfc;
  }
  vocabulary.adds_bos = vocabulary.pre_tokenizer == "llama-bpe" && vocabulary.bos.has_value();
  return absl::OkStatus();
}

// Merges that such a file may have say again what the scores say.
absl::Status ReadSentencePiece(const GgufFile& file, std::optional<std::string_view> pre_tokenizer,
                               Vocabulary& vocabulary) {
  constexpr std::string_view kNoRule = "default";
  std::string_view rule = pre_tokenizer.value_or(kNoRule);
  if (!pre_tokenizer.has_value() && file.Find(kPre) != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(rule, file.String(kPre));
  }
  if (rule != kNoRule) {
    return absl::InvalidArgumentError(
        absl::StrCat("pre-tokenizer '", base::ToAbsl(rule),
                     "' does not go with a SentencePiece vocabulary; known is default"));
  }
  PAGODA_ASSIGN_OR_RETURN(const auto scores, file.Floats(kScores));
  if (scores.size() != vocabulary.tokens.size()) {
    return absl::InvalidArgumentError(absl::StrCat(base::ToAbsl(kScores), " has ", scores.size(),
                                                   " entries for ", vocabulary.tokens.size(),
                                                   " tokens"));
  }
  for (const double score : scores) vocabulary.scores.push_back(static_cast<float>(score));
  PAGODA_ASSIGN_OR_RETURN(const bool prefix, ReadFlag(file, kAddSpacePrefix, true));
  using Prefix = SpaceMarks::Prefix;
  vocabulary.space_marks = {.prefix = prefix ? Prefix::kEach : Prefix::kNone,
                            .is_normalizer = true,
                            .strips_first_space = prefix};
  vocabulary.adds_bos = vocabulary.bos.has_value();
  return absl::OkStatus();
}

absl::Status ReadFamily(const GgufFile& file, std::optional<std::string_view> pre_tokenizer,
                        Vocabulary& vocabulary) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view model, file.String(kModel));
  if (model == kByteLevel) return ReadByteLevel(file, pre_tokenizer, vocabulary);
  if (model == kSentencePiece) return ReadSentencePiece(file, pre_tokenizer, vocabulary);
  return absl::InvalidArgumentError(
      absl::StrCat(base::ToAbsl(kModel), " is '", base::ToAbsl(model),
                   "'; built are 'gpt2' (byte-level BPE) and 'llama' (SentencePiece BPE)"));
}

}  // namespace

absl::StatusOr<Vocabulary> ReadGgufVocabulary(const GgufFile& file,
                                              std::optional<std::string_view> pre_tokenizer) {
  PAGODA_RETURN_IF_ERROR(CheckEntries(file));
  Vocabulary vocabulary;
  PAGODA_ASSIGN_OR_RETURN(const auto tokens, file.Strings(kTokens));
  vocabulary.tokens.assign(tokens.begin(), tokens.end());
  PAGODA_ASSIGN_OR_RETURN(vocabulary.kinds, ReadKinds(file));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.bos, ReadId(file, kBos));
  for (const std::string_view key : kEnds) {
    PAGODA_ASSIGN_OR_RETURN(const std::optional<base::TokenId> id, ReadId(file, key));
    const auto& known = vocabulary.eos;
    if (id.has_value() && std::find(known.begin(), known.end(), *id) == known.end()) {
      vocabulary.eos.push_back(*id);
    }
  }
  PAGODA_RETURN_IF_ERROR(ReadFamily(file, pre_tokenizer, vocabulary));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.adds_bos, ReadFlag(file, kAddBos, vocabulary.adds_bos));
  return vocabulary;
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::FromGguf(
    const GgufFile& file, std::optional<std::string_view> pre_tokenizer) {
  PAGODA_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadGgufVocabulary(file, pre_tokenizer));
  return MakeTokenizer(vocabulary);
}

}  // namespace pagoda::text
