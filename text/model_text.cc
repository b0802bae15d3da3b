#include "text/model_text.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "formats/file_mapping.h"
#include "formats/json_document.h"
#include "text/chat_template.h"
#include "text/make_tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"

namespace pagoda::text {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// A template in a file of its own counts before one in the configuration.
absl::Status ReadTemplateFile(const std::string& path, std::string& chat_template) {
  if (!Exists(path)) return absl::OkStatus();
  PAGODA_ASSIGN_OR_RETURN(const auto file, formats::FileMapping::Open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > ChatTemplate::kMaxTemplateBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", bytes.size(), " bytes; at most ",
                                                   ChatTemplate::kMaxTemplateBytes,
                                                   " are possible"));
  }
  chat_template.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelText> LoadModelText(const std::string& directory,
                                        std::span<const base::TokenId> config_eos) {
  ModelText text;
  const std::string tokenizer_path = directory + "/tokenizer.json";
  PAGODA_ASSIGN_OR_RETURN(const auto tokenizer, formats::JsonDocument::Open(tokenizer_path));
  PAGODA_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadTokenizerJson(*tokenizer));
  const std::string config_path = directory + "/tokenizer_config.json";
  if (Exists(config_path)) {
    PAGODA_ASSIGN_OR_RETURN(const auto config, formats::JsonDocument::Open(config_path));
    PAGODA_RETURN_IF_ERROR(ReadTokenizerConfig(*config, vocabulary, text.chat_template));
  }
  PAGODA_RETURN_IF_ERROR(ReadTemplateFile(directory + "/chat_template.jinja", text.chat_template));
  for (const base::TokenId id : config_eos) {
    if (std::ranges::find(vocabulary.eos, id) == vocabulary.eos.end()) vocabulary.eos.push_back(id);
  }
  auto made = MakeTokenizer(vocabulary);
  if (!made.ok()) {
    return absl::Status(made.status().code(),
                        absl::StrCat(tokenizer_path, ": ", made.status().message()));
  }
  text.tokenizer = *std::move(made);
  return text;
}

}  // namespace pagoda::text
