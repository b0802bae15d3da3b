#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "text/tokenizer.h"

namespace pagoda::text {

// The words of a model: how text becomes ids, and how a conversation becomes text.
struct ModelText {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::string chat_template;  // Jinja source, for ChatTemplate::Parse; empty: the model has none
};

// Reads them from a model directory in Hugging Face's layout: tokenizer.json (required),
// tokenizer_config.json and chat_template.jinja (where they are). `config_eos` are the ids by which
// the model's own configuration ends a reply; the tokenizer's own are added to them. Every entry
// that changes ids is honoured or the directory is refused: InvalidArgument with the file and the
// entry.
absl::StatusOr<ModelText> LoadModelText(const std::string& directory,
                                        std::span<const base::TokenId> config_eos);

}  // namespace pagoda::text
