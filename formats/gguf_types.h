#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::formats {

// Layout of a tensor type: values stand in blocks along the fastest dimension.
struct GgufTypeInfo {
  std::uint32_t number = 0;
  std::string_view name;
  std::uint64_t block_values = 0;
  std::uint64_t block_bytes = 0;
};

// Every type number the format has given out, built into Pagoda or not, so that a refusal can name
// it. Nothing for others.
std::optional<GgufTypeInfo> FindGgufType(std::uint32_t number);

}  // namespace pagoda::formats
