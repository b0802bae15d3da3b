#include "model/folder_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "model/config_limits.h"
#include "model/entry_reader.h"

namespace pagoda::model {
namespace {

using base::ToAbsl;
using formats::JsonDocument;
using formats::JsonValue;

constexpr std::string_view kConfigName = "config.json";
constexpr std::string_view kGenerationName = "generation_config.json";
constexpr double kDefaultRopeBase = 10000.0;
constexpr std::int32_t kMistralWindow = 4096;  // where config.json is silent

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool has_qkv_bias = false;
  bool shares_kv_heads_by_default = false;  // sizes that transformers would fill in by itself
};
constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", false, true},
    {"mistral", "MistralForCausalLM", false, false},
    {"qwen2", "Qwen2ForCausalLM", true, false},
};

// What says nothing about the forward pass: bookkeeping, training, and defaults of generation.
constexpr std::string_view kIgnored[] = {
    // Where the model comes from and how transformers holds it.
    "_name_or_path",
    "name_or_path",
    "transformers_version",
    "_commit_hash",
    "torch_dtype",
    "dtype",
    "use_cache",
    "return_dict",
    "return_dict_in_generate",
    "torchscript",
    "use_bfloat16",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "chunk_size_feed_forward",
    "is_llama_config",
    "transformers.js_config",
    "unsloth_version",
    "unsloth_fixed",
    "pretraining_tp",
    "is_decoder",
    // Training and other tasks.
    "initializer_range",
    "attention_dropout",
    "hidden_dropout",
    "problem_type",
    "id2label",
    "label2id",
    "num_labels",
    "task_specific_params",
    "finetuning_task",
    // Tokens and defaults of generation.
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "sep_token_id",
    "decoder_start_token_id",
    "tokenizer_class",
    "prefix",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
};

absl::StatusOr<Family> FindFamily(EntryReader& reader) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view type, reader.TextOr("model_type", ""));
  if (type.empty()) return reader.Refused("model_type", "is missing");
  for (const Family& family : kFamilies) {
    if (family.model_type == type) return family;
  }
  return absl::UnimplementedError(absl::StrCat(reader.PlaceOf("model_type"), " is '", ToAbsl(type),
                                               "', which is not built; built are llama, mistral "
                                               "and qwen2"));
}

absl::Status CheckArchitecture(EntryReader& reader, const Family& family) {
  const std::optional<JsonValue> names = reader.Take("architectures");
  if (!names.has_value()) return absl::OkStatus();
  for (const JsonValue& name : names->Elements()) {
    if (name.AsString() == family.architecture) continue;
    return reader.NotBuilt("architectures",
                           absl::StrCat("'", ToAbsl(name.AsString().value_or("?")), "' where '",
                                        ToAbsl(family.architecture), "' is expected"));
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(EntryReader& reader, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(config.num_layers, reader.Count("num_hidden_layers", kMaxLayers));
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, reader.Count("hidden_size", kMaxWidth));
  PAGODA_ASSIGN_OR_RETURN(config.feed_forward_size, reader.Count("intermediate_size", kMaxWidth));
  PAGODA_ASSIGN_OR_RETURN(config.context_length,
                          reader.Count("max_position_embeddings", kMaxContext));
  PAGODA_ASSIGN_OR_RETURN(const std::int32_t rows, reader.Count("vocab_size", kMaxVocabulary));
  config.num_vocabulary_rows = static_cast<std::uint32_t>(rows);
  config.vocabulary_size = config.num_vocabulary_rows;
  PAGODA_ASSIGN_OR_RETURN(const double epsilon, reader.Positive("rms_norm_eps"));
  config.rms_epsilon = static_cast<float>(epsilon);
  return absl::OkStatus();
}

absl::Status ReadHeads(EntryReader& reader, const Family& family, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(config.num_heads, reader.Count("num_attention_heads", kMaxHeads));
  if (family.shares_kv_heads_by_default) {
    PAGODA_ASSIGN_OR_RETURN(config.num_kv_heads,
                            reader.CountOr("num_key_value_heads", kMaxHeads, config.num_heads));
  } else {
    PAGODA_ASSIGN_OR_RETURN(config.num_kv_heads, reader.Count("num_key_value_heads", kMaxHeads));
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    return reader.Refused("num_key_value_heads",
                          absl::StrCat("is ", config.num_kv_heads, ", which does not divide the ",
                                       config.num_heads, " heads"));
  }
  PAGODA_ASSIGN_OR_RETURN(config.head_size, reader.CountOr("head_dim", kMaxHeadSize, 0));
  if (config.head_size == 0) {
    if (config.hidden_size % config.num_heads != 0) {
      return reader.Refused("head_dim",
                            absl::StrCat("is absent, and ", config.num_heads,
                                         " heads do not divide hidden_size ", config.hidden_size));
    }
    config.head_size = config.hidden_size / config.num_heads;
  }
  if (config.head_size % 2 != 0 || config.head_size > static_cast<std::int32_t>(kMaxHeadSize)) {
    return reader.Refused("head_dim",
                          absl::StrCat("gives heads of ", config.head_size,
                                       "; expected an even number up to ", kMaxHeadSize));
  }
  config.rotary_size = config.head_size;
  config.has_qkv_bias = family.has_qkv_bias;
  return absl::OkStatus();
}

absl::Status ReadLlama3Scaling(EntryReader& reader, Config& config) {
  Config::Llama3Scaling scaling;
  PAGODA_ASSIGN_OR_RETURN(scaling.factor, reader.Positive("factor"));
  PAGODA_ASSIGN_OR_RETURN(scaling.low_frequency_factor, reader.Positive("low_freq_factor"));
  PAGODA_ASSIGN_OR_RETURN(scaling.high_frequency_factor, reader.Positive("high_freq_factor"));
  PAGODA_ASSIGN_OR_RETURN(scaling.original_context,
                          reader.Count("original_max_position_embeddings", kMaxContext));
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor) {
    return reader.Refused("high_freq_factor", absl::StrCat("is ", scaling.high_frequency_factor,
                                                           "; expected more than low_freq_factor, ",
                                                           scaling.low_frequency_factor));
  }
  config.llama3_scaling = scaling;
  return absl::OkStatus();
}

// Older files write `type`, newer ones `rope_type`, some both.
absl::StatusOr<std::string_view> RopeType(EntryReader& reader) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view old_word, reader.TextOr("type", ""));
  PAGODA_ASSIGN_OR_RETURN(const std::string_view new_word, reader.TextOr("rope_type", ""));
  if (!old_word.empty() && !new_word.empty() && old_word != new_word) {
    return reader.Refused("rope_type", absl::StrCat("is '", ToAbsl(new_word), "' beside type '",
                                                    ToAbsl(old_word), "'"));
  }
  const std::string_view type = new_word.empty() ? old_word : new_word;
  return type.empty() ? std::string_view("default") : type;
}

// The entries of rope_scaling or rope_parameters.
absl::Status ReadRopeScaling(EntryReader& reader, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view type, RopeType(reader));
  PAGODA_RETURN_IF_ERROR(reader.OnlyNumber("partial_rotary_factor", 1.0));
  if (type == "linear") {
    PAGODA_ASSIGN_OR_RETURN(config.rope_position_scale, reader.Positive("factor"));
  } else if (type == "llama3") {
    PAGODA_RETURN_IF_ERROR(ReadLlama3Scaling(reader, config));
  } else if (type != "default") {
    return reader.NotBuilt(
        "rope_type", absl::StrCat("'", ToAbsl(type), "' (built are default, linear and llama3)"));
  }
  // How the model was trained; only other types compute with it.
  constexpr std::string_view kSilent[] = {"original_max_position_embeddings"};
  return reader.CheckAllTaken(kSilent);
}

absl::Status ReadRope(EntryReader& reader, Config& config) {
  PAGODA_ASSIGN_OR_RETURN(config.rope_base, reader.PositiveOr("rope_theta", 0.0));
  const bool has_outer_base = config.rope_base > 0.0;
  const std::optional<JsonValue> scaling = reader.Take("rope_scaling");
  const std::optional<JsonValue> parameters = reader.Take("rope_parameters");
  if (scaling.has_value() && parameters.has_value()) {
    return reader.Refused("rope_parameters", "stands beside rope_scaling; expected one of them");
  }
  if (scaling.has_value() || parameters.has_value()) {
    const std::string_view key = scaling.has_value() ? "rope_scaling" : "rope_parameters";
    const JsonValue value = scaling.has_value() ? *scaling : *parameters;
    if (value.kind() != JsonValue::Kind::kObject) {
      return reader.Refused(key, absl::StrCat("is ", value.KindName(), "; expected an object"));
    }
    EntryReader inner(value, reader.PlaceOf(key));
    PAGODA_ASSIGN_OR_RETURN(const double base, inner.PositiveOr("rope_theta", config.rope_base));
    if (has_outer_base && base != config.rope_base) {
      return inner.Refused("rope_theta",
                           absl::StrCat("is ", base, " beside rope_theta ", config.rope_base));
    }
    config.rope_base = base;
    PAGODA_RETURN_IF_ERROR(ReadRopeScaling(inner, config));
  }
  if (config.rope_base == 0.0) config.rope_base = kDefaultRopeBase;
  config.rotary_pairs = Config::RotaryPairs::kHalves;
  return absl::OkStatus();
}

absl::Status RefuseWindow(EntryReader& reader, const Family& family, const Config& config) {
  if (family.model_type == "qwen2") {
    // Without use_sliding_window both sizes are idle.
    for (const std::string_view idle : {"sliding_window", "max_window_layers"}) reader.Take(idle);
    PAGODA_RETURN_IF_ERROR(reader.OnlyBool("use_sliding_window", false));
  }
  if (family.model_type == "mistral") {
    const bool is_stated_absent = reader.IsNull("sliding_window");
    PAGODA_ASSIGN_OR_RETURN(
        const std::int32_t window,
        reader.CountOr("sliding_window", kMaxContext,
                       is_stated_absent ? config.context_length : kMistralWindow));
    if (window < config.context_length) {
      return reader.NotBuilt(
          "sliding_window",
          absl::StrCat(window, " where max_position_embeddings is ", config.context_length));
    }
  }
  const std::optional<JsonValue> layers = reader.Take("layer_types");
  if (!layers.has_value()) return absl::OkStatus();
  for (const JsonValue& layer : layers->Elements()) {
    if (layer.AsString() == "full_attention") continue;
    return reader.NotBuilt(
        "layer_types", absl::StrCat("'", ToAbsl(layer.AsString().value_or("?")), "' in a layer"));
  }
  return absl::OkStatus();
}

absl::Status RefuseUnbuiltVariants(EntryReader& reader) {
  PAGODA_RETURN_IF_ERROR(reader.OnlyText("hidden_act", "silu"));
  PAGODA_RETURN_IF_ERROR(reader.OnlyNumber("partial_rotary_factor", 1.0));
  for (const std::string_view key :
       {"attention_bias", "mlp_bias", "rope_interleaved", "is_encoder_decoder",
        "add_cross_attention", "tie_encoder_decoder"}) {
    PAGODA_RETURN_IF_ERROR(reader.OnlyBool(key, false));
  }
  const std::optional<JsonValue> quantization = reader.Take("quantization_config");
  if (!quantization.has_value()) return absl::OkStatus();
  const auto method = quantization->Find("quant_method");
  return reader.NotBuilt("quantization_config",
                         method.has_value()
                             ? absl::StrCat("'", ToAbsl(method->AsString().value_or("?")), "'")
                             : std::string(quantization->KindName()));
}

// Adds the ids of eos_token_id: one number, a list, or nothing.
absl::Status AddEos(const JsonDocument& document, std::vector<base::TokenId>& ids) {
  EntryReader reader(document.root(), document.name());
  const std::optional<JsonValue> entry = reader.Take("eos_token_id");
  if (!entry.has_value()) return absl::OkStatus();
  std::vector<JsonValue> values = entry->Elements();
  if (entry->kind() != JsonValue::Kind::kArray) values.push_back(*entry);
  for (const JsonValue& value : values) {
    const std::optional<std::uint64_t> id = value.AsUnsigned();
    if (!id.has_value() || *id >= kMaxVocabulary) {
      return reader.Refused(
          "eos_token_id",
          absl::StrCat("holds ", value.KindName(), "; expected token ids below ", kMaxVocabulary));
    }
    ids.push_back(static_cast<base::TokenId>(*id));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Config> ReadConfig(const JsonDocument& document) {
  if (document.root().kind() != JsonValue::Kind::kObject) {
    return absl::InvalidArgumentError(
        absl::StrCat(document.name(), ": is ", document.root().KindName(), "; expected an object"));
  }
  EntryReader reader(document.root(), document.name());
  PAGODA_ASSIGN_OR_RETURN(const Family family, FindFamily(reader));
  Config config;
  config.architecture = family.model_type;
  PAGODA_RETURN_IF_ERROR(CheckArchitecture(reader, family));
  PAGODA_RETURN_IF_ERROR(RefuseUnbuiltVariants(reader));
  PAGODA_RETURN_IF_ERROR(ReadSizes(reader, config));
  PAGODA_RETURN_IF_ERROR(ReadHeads(reader, family, config));
  PAGODA_RETURN_IF_ERROR(ReadRope(reader, config));
  PAGODA_RETURN_IF_ERROR(RefuseWindow(reader, family, config));
  PAGODA_ASSIGN_OR_RETURN(const bool is_tied, reader.BoolOr("tie_word_embeddings", false));
  config.head = is_tied ? Config::Head::kEmbedding : Config::Head::kOwn;
  PAGODA_RETURN_IF_ERROR(reader.CheckAllTaken(kIgnored));
  return config;
}

absl::StatusOr<std::unique_ptr<const JsonDocument>> OpenConfig(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory) / kConfigName;
  if (std::filesystem::exists(path)) return JsonDocument::Open(path.string());
  return absl::NotFoundError(
      absl::StrCat(directory,
                   ": is a folder without a config.json; a model is a .gguf file, or a folder with "
                   "config.json, tokenizer.json and *.safetensors"));
}

absl::StatusOr<std::vector<base::TokenId>> ReadEosTokens(const std::string& directory) {
  std::vector<base::TokenId> ids;
  const std::filesystem::path generation = std::filesystem::path(directory) / kGenerationName;
  if (std::filesystem::exists(generation)) {
    PAGODA_ASSIGN_OR_RETURN(const auto document, JsonDocument::Open(generation.string()));
    PAGODA_RETURN_IF_ERROR(AddEos(*document, ids));
  }
  PAGODA_ASSIGN_OR_RETURN(const auto config, OpenConfig(directory));
  PAGODA_RETURN_IF_ERROR(AddEos(*config, ids));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace pagoda::model
