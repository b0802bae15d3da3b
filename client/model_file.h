#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernels_pack.h"
#include "model/load_plan.h"

namespace pagoda::client {

struct TensorFacts {
  std::string name, type;
  std::vector<std::uint64_t> shape;  // the fastest dimension last
  std::int64_t bytes = 0;
};

struct TokenizerFacts {
  std::string kind;  // as the file calls it
  std::uint32_t vocabulary_size = 0;
  std::optional<std::uint32_t> bos;
  std::vector<std::uint32_t> eos;
  bool adds_bos = false;
  absl::Status usable;  // why Pagoda cannot tokenise with it
};

// What loading would come to. Plain figures: nothing points into the file.
struct PlannedModel {
  model::Config config;
  model::MemoryPlan memory;  // weights as the kernels of its layout take them
  std::int64_t num_parameters = 0;
  std::string weight_format, activation_dtype;
  base::KvType kv_type = base::KvType::kBf16;
  bool has_tied_head = false;
};

// What is in a model file, or a folder of safetensors. Plain data.
struct ModelFacts {
  std::string format;
  std::int64_t file_bytes = 0;  // of a folder: of its tensors
  std::string name, architecture;
  std::vector<TensorFacts> tensors;  // in file order
  TokenizerFacts tokenizer;
  std::optional<std::int64_t> template_bytes;  // none: it has no chat template
  absl::Status template_usable;
  absl::StatusOr<PlannedModel> planned;  // or why it would be refused
};

// A file or folder is shown whether Pagoda can load it or not, if its headers can be read. Errors:
// NotFound; InvalidArgument for what is broken.
absl::StatusOr<ModelFacts> ReadModelFacts(const std::string& path);

// What loading it with these choices would take, packed as a backend of that layout does. Errors:
// those of the server, in its words.
absl::StatusOr<PlannedModel> PlanModelFile(const std::string& path,
                                           const model::LoadOptions& options,
                                           kernels::PackLayout layout);

// Whether a server would take the vocabulary and the chat template. The error that it would give.
absl::Status CheckWords(const std::string& path);

}  // namespace pagoda::client
