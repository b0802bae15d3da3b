#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/safetensors.h"

namespace pagoda::formats {

// The weights of a model folder: `model.safetensors`, or the shards that
// `model.safetensors.index.json` names. The index and the shards must agree whole: every named
// shard is there, holds exactly the tensors that the index puts there, no tensor stands in two, the
// bytes add up to total_size, and no other weight file lies beside them. Nothing is kept open when
// any of it fails. Views live as long as this. Threads: const after Open, any. Errors: NotFound (no
// weights), InvalidArgument (files, tensors, numbers).
class SafetensorsFolder {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsFolder>> Open(const std::string& directory);

  // In order of the shards' names, then of the bytes.
  std::span<const SafetensorsTensor* const> tensors() const { return tensors_; }
  std::span<const std::unique_ptr<SafetensorsFile>> files() const { return files_; }

  static constexpr std::size_t kMaxShards = 4096;

  explicit SafetensorsFolder(std::vector<std::unique_ptr<SafetensorsFile>> files);  // for Open

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<const SafetensorsTensor*> tensors_;
};

}  // namespace pagoda::formats
