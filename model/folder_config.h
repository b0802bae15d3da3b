#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "formats/json_document.h"
#include "model/config.h"

namespace pagoda::model {

// Reads the config.json of a model folder. Closed world: an entry is used, or known to leave the
// mathematics alone, or the load is refused with its name. An entry of null is as if absent; what
// is absent has the value that transformers gives it, except sizes, which must be there. The
// tokenizer is not looked at: vocabulary_size is that of the embedding. Errors: InvalidArgument
// (entry, found, expected), Unimplemented (what this model needs and Pagoda lacks).
absl::StatusOr<Config> ReadConfig(const formats::JsonDocument& document);

// The config.json of a model folder. Errors: NotFound, with what a model folder holds; the file's
// own.
absl::StatusOr<std::unique_ptr<const formats::JsonDocument>> OpenConfig(
    const std::string& directory);

// The ids that end a reply, by generation_config.json (if the folder has one) and config.json, the
// smallest first; none when neither names one.
absl::StatusOr<std::vector<base::TokenId>> ReadEosTokens(const std::string& directory);

}  // namespace pagoda::model
