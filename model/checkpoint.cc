// The names of element types are the same in GGUF, safetensors and kernels/, so a tensor's type is
// found by its name.

#include "model/checkpoint.h"

#include <filesystem>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/gguf_types.h"
#include "formats/json_document.h"
#include "formats/safetensors_folder.h"
#include "model/folder_config.h"

namespace pagoda::model {

using base::ToAbsl;
using kernels::ElementType;

struct Checkpoint::State {
  std::unique_ptr<const formats::GgufFile> gguf;             // null: none, or someone else's
  std::unique_ptr<const formats::SafetensorsFolder> folder;  // null: none
  std::string path;
  Config config;
  TensorNaming naming = TensorNaming::kGguf;
  std::vector<StoredTensor> tensors;
  std::map<std::string_view, const StoredTensor*> by_name;
};

namespace {

std::string TypeName(std::uint32_t number) {
  const auto type = formats::FindGgufType(number);
  return type.has_value() ? std::string(type->name) : absl::StrCat("number ", number);
}

StoredTensor Stored(const formats::GgufTensor& tensor) {
  return {.name = tensor.name,
          .type_name = TypeName(tensor.type),
          .shape = {tensor.shape.rbegin(), tensor.shape.rend()},
          .data = tensor.data};
}

StoredTensor Stored(const formats::SafetensorsTensor& tensor) {
  return {.name = tensor.name,
          .type_name = std::string(tensor.type),
          .shape = tensor.shape,
          .data = tensor.data};
}

// Weights that transformers would put on top of the model's own.
absl::Status RefuseAdapter(const std::filesystem::path& folder) {
  for (const char* const name : {"adapter_config.json", "adapter_model.safetensors"}) {
    if (!std::filesystem::exists(folder / name)) continue;
    return absl::UnimplementedError(absl::StrCat(
        (folder / name).string(), ": belongs to an adapter, and adapters are not built"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Checkpoint::State>> OpenFolder(const std::string& path) {
  const std::filesystem::path folder(path);
  auto state = std::make_unique<Checkpoint::State>();
  state->path = path;
  state->naming = TensorNaming::kTransformers;
  PAGODA_RETURN_IF_ERROR(RefuseAdapter(folder));
  PAGODA_ASSIGN_OR_RETURN(const auto document, OpenConfig(path));
  PAGODA_ASSIGN_OR_RETURN(state->config, ReadConfig(*document));
  std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  state->config.name = whole.filename().string();
  PAGODA_ASSIGN_OR_RETURN(state->folder, formats::SafetensorsFolder::Open(path));
  for (const formats::SafetensorsTensor* const tensor : state->folder->tensors()) {
    state->tensors.push_back(Stored(*tensor));
  }
  return state;
}

}  // namespace

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {
  for (const StoredTensor& tensor : state_->tensors) {
    state_->by_name.emplace(tensor.name, &tensor);
  }
}
Checkpoint::~Checkpoint() = default;

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<State> state, OpenFolder(path));
    return std::make_unique<Checkpoint>(std::move(state));
  }
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<const formats::GgufFile> file,
                          formats::GgufFile::Open(path));
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint, Over(*file));
  checkpoint->state_->gguf = std::move(file);
  return checkpoint;
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Over(const formats::GgufFile& file) {
  auto state = std::make_unique<State>();
  state->path = file.path();
  PAGODA_ASSIGN_OR_RETURN(state->config, ReadConfig(file));
  for (const formats::GgufTensor& tensor : file.tensors()) {
    state->tensors.push_back(Stored(tensor));
  }
  return std::make_unique<Checkpoint>(std::move(state));
}

const std::string& Checkpoint::path() const { return state_->path; }
const Config& Checkpoint::config() const { return state_->config; }
TensorNaming Checkpoint::naming() const { return state_->naming; }
std::span<const StoredTensor> Checkpoint::tensors() const { return state_->tensors; }

const StoredTensor* Checkpoint::Find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : found->second;
}

absl::StatusOr<ElementType> ElementTypeOf(const StoredTensor& tensor) {
  std::string built;
  for (const ElementType type : kernels::kAllElementTypes) {
    if (tensor.type_name == kernels::Name(type)) return type;
    absl::StrAppend(&built, built.empty() ? "" : ", ", kernels::Name(type));
  }
  return absl::UnimplementedError(absl::StrCat("tensor '", ToAbsl(tensor.name), "' is of type ",
                                               tensor.type_name, ", which is not built; built are ",
                                               built));
}

}  // namespace pagoda::model
