#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "model/config_limits.h"

namespace pagoda::model {
namespace {

using base::ToAbsl;

struct Family {
  std::string_view architecture;
  Config::RotaryPairs rotary_pairs = Config::RotaryPairs::kInterleaved;
  bool has_qkv_bias = false;
};
constexpr Family kFamilies[] = {{"llama", Config::RotaryPairs::kInterleaved, false},
                                {"qwen2", Config::RotaryPairs::kHalves, true}};

// Reads keys of the family and remembers which; what was never asked for is what we would ignore.
class KeyReader {
 public:
  KeyReader(const formats::GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(absl::StrCat(ToAbsl(architecture), ".")) {}

  const formats::GgufFile& file() const { return file_; }

  bool Has(std::string_view key) const { return file_.Find(Full(key)) != nullptr; }

  absl::StatusOr<std::int32_t> Count(std::string_view key, std::uint64_t largest) {
    const std::string full = Consume(key);
    PAGODA_ASSIGN_OR_RETURN(const std::uint64_t value, file_.Unsigned(full));
    if (value >= 1 && value <= largest) return static_cast<std::int32_t>(value);
    return Refused(full, absl::StrCat("is ", value, "; expected 1 to ", largest));
  }

  absl::StatusOr<std::int32_t> CountOr(std::string_view key, std::uint64_t largest,
                                       std::int32_t absent) {
    if (!Has(key)) return absent;
    return Count(key, largest);
  }

  // A finite number above 0.
  absl::StatusOr<double> Positive(std::string_view key) {
    const std::string full = Consume(key);
    PAGODA_ASSIGN_OR_RETURN(const double value, file_.Float(full));
    if (std::isfinite(value) && value > 0.0) return value;
    return Refused(full, absl::StrCat("is ", value, "; expected a finite number above 0"));
  }

  absl::StatusOr<double> PositiveOr(std::string_view key, double absent) {
    if (!Has(key)) return absent;
    return Positive(key);
  }

  absl::StatusOr<std::string> Text(std::string_view key) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view value, file_.String(Consume(key)));
    return std::string(value);
  }

  // Keys that are harmless at one value: any other asks for mathematics that is not built.
  absl::Status OnlyUnsigned(std::string_view key, std::uint64_t harmless) {
    if (!Has(key)) return absl::OkStatus();
    const std::string full = Consume(key);
    PAGODA_ASSIGN_OR_RETURN(const std::uint64_t value, file_.Unsigned(full));
    return value == harmless ? absl::OkStatus() : NotBuilt(full, absl::StrCat(value));
  }
  absl::Status OnlyBool(std::string_view key, bool harmless) {
    if (!Has(key)) return absl::OkStatus();
    const std::string full = Consume(key);
    PAGODA_ASSIGN_OR_RETURN(const bool value, file_.Bool(full));
    return value == harmless ? absl::OkStatus() : NotBuilt(full, value ? "true" : "false");
  }

  absl::Status CheckAllConsumed() const {
    for (const auto& [key, value] : file_.metadata()) {
      if (!key.starts_with(prefix_)) continue;
      if (std::find(consumed_.begin(), consumed_.end(), key) == consumed_.end()) {
        return absl::UnimplementedError(absl::StrCat(
            file_.path(), ": metadata '", ToAbsl(key),
            "' is not known; it may change the mathematics, so the model is not loaded"));
      }
    }
    return absl::OkStatus();
  }

  // Of a key of the architecture, whole.
  std::string Full(std::string_view key) const { return absl::StrCat(prefix_, ToAbsl(key)); }

  absl::Status Refused(std::string_view full_key, std::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": metadata '", ToAbsl(full_key), "' ", ToAbsl(why)));
  }
  absl::Status NotBuilt(std::string_view full_key, std::string_view value) const {
    return absl::UnimplementedError(absl::StrCat(file_.path(), ": metadata '", ToAbsl(full_key),
                                                 "' is ", ToAbsl(value), ", which is not built"));
  }

 private:
  std::string Consume(std::string_view key) {
    consumed_.push_back(Full(key));
    return consumed_.back();
  }

  const formats::GgufFile& file_;
  const std::string prefix_;
  std::vector<std::string> consumed_;
};

absl::StatusOr<Family> FindFamily(const formats::GgufFile& file) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view architecture, file.String("general.architecture"));
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) return family;
  }
  return absl::UnimplementedError(absl::StrCat(file.path(), ": architecture '",
                                               ToAbsl(architecture),
                                               "' is not built; built are 'llama' and 'qwen2'"));
}

absl::Status CheckWholeModel(const formats::GgufFile& file) {
  if (file.Find("general.type") != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view type, file.String("general.type"));
    if (type != "model") {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path(), ": is of type '", ToAbsl(type), "', not a model"));
    }
  }
  if (file.Find("split.count") != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(const std::uint64_t count, file.Unsigned("split.count"));
    if (count > 1) {
      return absl::UnimplementedError(
          absl::StrCat(file.path(), ": is one of ", count, " files of a split model"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(KeyReader& reader, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(config.num_layers, reader.Count("block_count", kMaxLayers));
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, reader.Count("embedding_length", kMaxWidth));
  PAGODA_ASSIGN_OR_RETURN(config.feed_forward_size, reader.Count("feed_forward_length", kMaxWidth));
  PAGODA_ASSIGN_OR_RETURN(config.context_length, reader.Count("context_length", kMaxContext));
  PAGODA_ASSIGN_OR_RETURN(const double epsilon,
                          reader.Positive("attention.layer_norm_rms_epsilon"));
  config.rms_epsilon = static_cast<float>(epsilon);
  return absl::OkStatus();
}

absl::Status ReadHeads(KeyReader& reader, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(config.num_heads, reader.Count("attention.head_count", kMaxHeads));
  PAGODA_ASSIGN_OR_RETURN(config.num_kv_heads,
                          reader.CountOr("attention.head_count_kv", kMaxHeads, config.num_heads));
  if (config.num_heads % config.num_kv_heads != 0) {
    return reader.Refused(reader.Full("attention.head_count_kv"),
                          absl::StrCat("is ", config.num_kv_heads, ", which does not divide the ",
                                       config.num_heads, " heads"));
  }
  if (!reader.Has("attention.key_length") && config.hidden_size % config.num_heads != 0) {
    return reader.Refused(reader.Full("attention.key_length"),
                          "is absent, and the heads do not divide embedding_length");
  }
  PAGODA_ASSIGN_OR_RETURN(config.head_size, reader.CountOr("attention.key_length", kMaxHeadSize,
                                                           config.hidden_size / config.num_heads));
  PAGODA_ASSIGN_OR_RETURN(const std::int32_t value_size,
                          reader.CountOr("attention.value_length", kMaxHeadSize, config.head_size));
  if (value_size != config.head_size) {
    return reader.NotBuilt(reader.Full("attention.value_length"),
                           absl::StrCat(value_size, " beside keys of ", config.head_size));
  }
  if (config.head_size % 2 != 0 || config.head_size > static_cast<std::int32_t>(kMaxHeadSize)) {
    return reader.Refused(reader.Full("attention.key_length"),
                          absl::StrCat("gives heads of ", config.head_size,
                                       "; expected an even "
                                       "number up to ",
                                       kMaxHeadSize));
  }
  return absl::OkStatus();
}

absl::Status ReadRopeScaling(KeyReader& reader, Config& config) {
  std::string type = "none";
  if (reader.Has("rope.scaling.type")) {
    PAGODA_ASSIGN_OR_RETURN(type, reader.Text("rope.scaling.type"));
  }
  if (type != "none" && type != "linear")
    return reader.NotBuilt(reader.Full("rope.scaling.type"), type);
  PAGODA_ASSIGN_OR_RETURN(const double factor, reader.PositiveOr("rope.scaling.factor", 1.0));
  // Says how a model was trained; plays a part in yarn alone.
  for (const std::string_view key : {"rope.scaling.original_context_length"}) {
    PAGODA_RETURN_IF_ERROR(reader.CountOr(key, kMaxContext, 1).status());
  }
  if (reader.Has("rope.scaling.finetuned")) {
    const absl::Status untuned = reader.OnlyBool("rope.scaling.finetuned", false);
    if (!untuned.ok()) PAGODA_RETURN_IF_ERROR(reader.OnlyBool("rope.scaling.finetuned", true));
  }
  if (type == "none" && factor != 1.0) {
    return reader.Refused(reader.Full("rope.scaling.factor"),
                          absl::StrCat("is ", factor, ", but rope.scaling.type names no scaling"));
  }
  config.rope_position_scale = factor;
  return absl::OkStatus();
}

absl::Status ReadRope(KeyReader& reader, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(config.rope_base, reader.PositiveOr("rope.freq_base", 10000.0));
  PAGODA_ASSIGN_OR_RETURN(config.rotary_size,
                          reader.CountOr("rope.dimension_count", kMaxHeadSize, config.head_size));
  if (config.rotary_size % 2 != 0 || config.rotary_size > config.head_size) {
    return reader.Refused(
        reader.Full("rope.dimension_count"),
        absl::StrCat("is ", config.rotary_size, "; expected an even number up to the head size ",
                     config.head_size));
  }
  return ReadRopeScaling(reader, config);
}

absl::Status RefuseUnbuiltVariants(KeyReader& reader, const Config& config) {
  PAGODA_RETURN_IF_ERROR(reader.OnlyUnsigned("expert_count", 0));
  PAGODA_RETURN_IF_ERROR(reader.OnlyUnsigned("expert_used_count", 0));
  PAGODA_RETURN_IF_ERROR(reader.OnlyBool("use_parallel_residual", false));
  PAGODA_RETURN_IF_ERROR(reader.OnlyBool("attention.causal", true));
  PAGODA_ASSIGN_OR_RETURN(
      const std::int32_t window,
      reader.CountOr("attention.sliding_window", kMaxContext, config.context_length));
  if (window >= config.context_length) return absl::OkStatus();
  return reader.NotBuilt(
      reader.Full("attention.sliding_window"),
      absl::StrCat(window, " where the context has ", config.context_length, " tokens"));
}

absl::Status ReadVocabulary(KeyReader& reader, Config& config) {
  const formats::GgufFile& file = reader.file();
  const formats::GgufTensor* const embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": tensor 'token_embd.weight' ",
                     embedding == nullptr ? "is missing" : "does not have two dimensions"));
  }
  const std::uint64_t rows = embedding->shape[1];
  if (rows > kMaxVocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": a vocabulary of ", rows, "; the limit is ", kMaxVocabulary));
  }
  PAGODA_ASSIGN_OR_RETURN(
      const std::int32_t stated,
      reader.CountOr("vocab_size", kMaxVocabulary, static_cast<std::int32_t>(rows)));
  if (static_cast<std::uint64_t>(stated) != rows) {
    return reader.Refused(
        reader.Full("vocab_size"),
        absl::StrCat("is ", stated, ", but token_embd.weight has ", rows, " rows"));
  }
  PAGODA_ASSIGN_OR_RETURN(const auto tokens, file.Strings("tokenizer.ggml.tokens"));
  if (tokens.empty() || tokens.size() > rows) {
    return reader.Refused(
        "tokenizer.ggml.tokens",
        absl::StrCat("has ", tokens.size(), " tokens for ", rows, " embedding rows"));
  }
  config.num_vocabulary_rows = static_cast<std::uint32_t>(rows);
  config.vocabulary_size = static_cast<std::uint32_t>(tokens.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Config> ReadConfig(const formats::GgufFile& file) {
  PAGODA_ASSIGN_OR_RETURN(const Family family, FindFamily(file));
  PAGODA_RETURN_IF_ERROR(CheckWholeModel(file));
  KeyReader reader(file, family.architecture);
  Config config;
  config.architecture = family.architecture;
  config.rotary_pairs = family.rotary_pairs;
  config.has_qkv_bias = family.has_qkv_bias;
  if (file.Find("general.name") != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view name, file.String("general.name"));
    config.name = name;
  }
  PAGODA_RETURN_IF_ERROR(ReadSizes(reader, config));
  PAGODA_RETURN_IF_ERROR(ReadHeads(reader, config));
  PAGODA_RETURN_IF_ERROR(ReadRope(reader, config));
  PAGODA_RETURN_IF_ERROR(RefuseUnbuiltVariants(reader, config));
  PAGODA_RETURN_IF_ERROR(ReadVocabulary(reader, config));
  PAGODA_RETURN_IF_ERROR(reader.CheckAllConsumed());
  return config;
}

}  // namespace pagoda::model
