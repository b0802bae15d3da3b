#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pagoda::text {

// Goldens that hold one CRC-32 for each 4,096 code points (surrogates left out): what an oracle
// made of a text that shows the code points among neighbours.

// zlib's.
std::uint32_t Crc32(std::span<const unsigned char> bytes);

// `context` with each '@' replaced by the code point, for all code points of a block, joined, is
// given to `sum`; compares what it returns with the sums of tests/oracle/goldens/`golden`.
void CompareCodePointSums(const std::string& golden, std::string_view context,
                          const std::function<std::uint32_t(std::string_view)>& sum);

}  // namespace pagoda::text
