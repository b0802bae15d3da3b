#pragma once

#include <cstdint>

// The largest sizes that a configuration may state: beyond any model, and small enough that no
// product of two of them overflows.
namespace pagoda::model {

inline constexpr std::uint64_t kMaxLayers = 1024;
inline constexpr std::uint64_t kMaxHeads = 1024;
inline constexpr std::uint64_t kMaxHeadSize = 1024;
inline constexpr std::uint64_t kMaxWidth = 1 << 20;  // of hidden and feed-forward rows
inline constexpr std::uint64_t kMaxContext = 1 << 26;
inline constexpr std::uint64_t kMaxVocabulary = 1 << 24;

}  // namespace pagoda::model
