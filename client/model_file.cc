#include "client/model_file.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "formats/file_mapping.h"
#include "formats/gguf.h"
#include "formats/gguf_types.h"
#include "formats/json_document.h"
#include "formats/safetensors_folder.h"
#include "kernels/kernels_pack.h"
#include "model/checkpoint.h"
#include "model/folder_config.h"
#include "model/load_checks.h"
#include "text/chat_template.h"
#include "text/load_chat_template.h"
#include "text/model_text.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json_rules.h"

namespace pagoda::client {
namespace {

using formats::GgufFile;

std::string StringOr(const GgufFile& file, std::string_view key, std::string_view otherwise) {
  const auto value = file.String(key);
  return std::string(value.ok() ? *value : otherwise);
}

std::string TypeName(std::uint32_t number) {
  const auto type = formats::FindGgufType(number);
  return type.has_value() ? std::string(type->name) : absl::StrCat("type ", number);
}

std::vector<TensorFacts> Tensors(const GgufFile& file) {
  std::vector<TensorFacts> tensors;
  for (const formats::GgufTensor& tensor : file.tensors()) {
    tensors.push_back({.name = std::string(tensor.name),
                       .type = TypeName(tensor.type),
                       .shape = {tensor.shape.rbegin(), tensor.shape.rend()},
                       .bytes = static_cast<std::int64_t>(tensor.data.size())});
  }
  return tensors;
}

void Take(const text::Tokenizer& tokenizer, TokenizerFacts& facts) {
  facts.vocabulary_size = tokenizer.vocabulary_size();
  facts.adds_bos = tokenizer.adds_bos();
  facts.bos = tokenizer.bos_token();
  for (const base::TokenId eos : tokenizer.eos_tokens()) facts.eos.push_back(eos);
}

// `tokenizer` is null where the file's is refused: then the template is read and not tried.
void TakeTemplate(std::string_view source, const text::Tokenizer* tokenizer, ModelFacts& facts) {
  facts.template_bytes = static_cast<std::int64_t>(source.size());
  facts.template_usable = tokenizer == nullptr
                              ? text::ChatTemplate::Parse(source).status()
                              : text::LoadChatTemplate(source, *tokenizer).status();
}

void TakeWords(const GgufFile& file, ModelFacts& facts) {
  const std::string model = StringOr(file, "tokenizer.ggml.model", "none named");
  facts.tokenizer.kind = model == "llama"
                             ? "llama (SentencePiece BPE)"
                             : absl::StrCat(model, ", split rule ",
                                            StringOr(file, "tokenizer.ggml.pre", "none named"));
  const auto tokenizer = text::Tokenizer::FromGguf(file);
  facts.tokenizer.usable = tokenizer.status();
  if (tokenizer.ok()) Take(**tokenizer, facts.tokenizer);
  const auto source = file.String("tokenizer.chat_template");
  if (source.ok()) TakeTemplate(*source, tokenizer.ok() ? tokenizer->get() : nullptr, facts);
}

absl::StatusOr<text::ModelText> ReadWords(const std::string& folder) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<base::TokenId> eos, model::ReadEosTokens(folder));
  return text::LoadModelText(folder, eos);
}

std::string SplitRuleOf(const std::string& folder) {
  const auto document =
      formats::JsonDocument::Open((std::filesystem::path(folder) / "tokenizer.json").string());
  if (!document.ok()) return "unknown";
  const auto rule = (*document)->root().Find("pre_tokenizer");
  if (!rule.has_value() || rule->is_null()) return "none";  // a SentencePiece vocabulary
  return text::ReadPreTokenizer(*rule).value_or("unknown");
}

// The chat template of a folder whose tokenizer is refused.
std::optional<std::string> TemplateIn(const std::string& folder) {
  const std::filesystem::path path(folder);
  if (const auto file = formats::FileMapping::Open((path / "chat_template.jinja").string());
      file.ok()) {
    const auto bytes = file->bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const auto config = formats::JsonDocument::Open((path / "tokenizer_config.json").string());
  if (!config.ok()) return std::nullopt;
  const auto source = (*config)->root().Find("chat_template");
  if (!source.has_value() || !source->AsString().has_value()) return std::nullopt;
  return std::string(*source->AsString());
}

void TakeWords(const std::string& folder, ModelFacts& facts) {
  facts.tokenizer.kind = absl::StrCat("tokenizer.json, split rule ", SplitRuleOf(folder));
  const auto words = ReadWords(folder);
  facts.tokenizer.usable = words.status();
  if (!words.ok()) {
    if (const auto source = TemplateIn(folder)) TakeTemplate(*source, nullptr, facts);
    return;
  }
  Take(*words->tokenizer, facts.tokenizer);
  if (!words->chat_template.empty()) {
    TakeTemplate(words->chat_template, words->tokenizer.get(), facts);
  }
}

absl::StatusOr<PlannedModel> Plan(const model::Checkpoint& checkpoint,
                                  const model::LoadOptions& options, kernels::PackLayout layout) {
  PAGODA_ASSIGN_OR_RETURN(const model::LoadPlan plan, model::PlanLoad(checkpoint, options, layout));
  return PlannedModel{.config = plan.config,
                      .memory = plan.memory,
                      .num_parameters = plan.weights.num_parameters,
                      .weight_format = plan.weights.weight_format,
                      .activation_dtype = plan.activation_dtype,
                      .kv_type = plan.kv_geometry.groups.front().type,
                      .has_tied_head = plan.weights.is_tied};
}

absl::StatusOr<PlannedModel> PlanAsItComes(const GgufFile& file) {
  PAGODA_ASSIGN_OR_RETURN(const auto checkpoint, model::Checkpoint::Over(file));
  return Plan(*checkpoint, {}, kernels::PackLayout::kColumnPanels);
}

// What a folder's config.json calls its architecture, before anything is made of it.
std::string ArchitectureIn(const formats::JsonDocument& config) {
  const auto type = config.root().Find("model_type");
  const auto name = type.has_value() ? type->AsString() : std::nullopt;
  return std::string(name.value_or("not named"));
}

// A folder that the loader refuses: what can be read of it all the same, beside the reason.
absl::StatusOr<ModelFacts> ReadRefusedFolder(const std::string& path, const absl::Status& why) {
  const auto config = model::OpenConfig(path);
  const auto weights = formats::SafetensorsFolder::Open(path);
  if (!config.ok() || !weights.ok()) return why;
  ModelFacts facts{.format = "folder of safetensors",
                   .name = std::filesystem::path(path).filename().string(),
                   .architecture = ArchitectureIn(**config),
                   .tensors = {},
                   .tokenizer = {},
                   .template_bytes = std::nullopt,
                   .template_usable = absl::OkStatus(),
                   .planned = why};
  for (const formats::SafetensorsTensor* const tensor : (*weights)->tensors()) {
    facts.tensors.push_back({.name = std::string(tensor->name),
                             .type = std::string(tensor->type),
                             .shape = {tensor->shape.begin(), tensor->shape.end()},
                             .bytes = static_cast<std::int64_t>(tensor->data.size())});
  }
  return facts;
}

absl::StatusOr<ModelFacts> ReadOpenFolder(const std::string& path) {
  const auto checkpoint = model::Checkpoint::Open(path);
  if (!checkpoint.ok()) return ReadRefusedFolder(path, checkpoint.status());
  const model::Config& config = (*checkpoint)->config();
  ModelFacts facts{.format = "folder of safetensors",
                   .name = config.name,
                   .architecture = config.architecture,
                   .tensors = {},
                   .tokenizer = {},
                   .template_bytes = std::nullopt,
                   .template_usable = absl::OkStatus(),
                   .planned = Plan(**checkpoint, {}, kernels::PackLayout::kColumnPanels)};
  for (const model::StoredTensor& tensor : (*checkpoint)->tensors()) {
    facts.tensors.push_back({.name = std::string(tensor.name),
                             .type = tensor.type_name,
                             .shape = tensor.shape,
                             .bytes = static_cast<std::int64_t>(tensor.data.size())});
  }
  return facts;
}

absl::StatusOr<ModelFacts> ReadFolder(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(ModelFacts facts, ReadOpenFolder(path));
  TakeWords(path, facts);
  for (const TensorFacts& tensor : facts.tensors) facts.file_bytes += tensor.bytes;
  return facts;
}

}  // namespace

absl::StatusOr<ModelFacts> ReadModelFacts(const std::string& path) {
  std::error_code no_folder;
  if (std::filesystem::is_directory(path, no_folder)) return ReadFolder(path);
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(path));
  std::error_code ignored;
  ModelFacts facts{
      .format = "GGUF",
      .file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, ignored)),
      .name = StringOr(*file, "general.name", ""),
      .architecture = StringOr(*file, "general.architecture", "not named"),
      .tensors = Tensors(*file),
      .tokenizer = {},
      .template_bytes = std::nullopt,
      .template_usable = absl::OkStatus(),
      .planned = PlanAsItComes(*file)};
  TakeWords(*file, facts);
  return facts;
}

absl::StatusOr<PlannedModel> PlanModelFile(const std::string& path,
                                           const model::LoadOptions& options,
                                           kernels::PackLayout layout) {
  PAGODA_ASSIGN_OR_RETURN(const auto checkpoint, model::Checkpoint::Open(path));
  return Plan(*checkpoint, options, layout);
}

absl::Status CheckWords(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const ModelFacts facts, ReadModelFacts(path));
  PAGODA_RETURN_IF_ERROR(facts.tokenizer.usable);
  PAGODA_RETURN_IF_ERROR(facts.template_usable);
  if (!facts.planned.ok()) return facts.planned.status();
  return model::CheckVocabulary(facts.tokenizer.vocabulary_size, facts.planned->config);
}

}  // namespace pagoda::client
