#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/gguf.h"

namespace pagoda::formats {

// What a GGUF file says, in file order, checked except for duplicate names. Views point into the
// parsed bytes.
struct GgufContents {
  std::vector<std::pair<std::string_view, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;
};

// Reads the whole of `bytes`; `name` opens every message. Memory is at most eight times the bytes
// (narrow integers are widened), whatever the counts inside say.
absl::StatusOr<GgufContents> ParseGguf(std::span<const std::byte> bytes, const std::string& name);

}  // namespace pagoda::formats
