#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pagoda::base {

enum class KvType : std::uint8_t { kBf16, kF32 };

constexpr std::int64_t BytesPerElement(KvType type) { return type == KvType::kBf16 ? 2 : 4; }
constexpr const char* Name(KvType type) { return type == KvType::kBf16 ? "bf16" : "f32"; }

// Layers that share one block table: same window, heads, head size and type.
struct KvGroup {
  std::int32_t num_layers = 0;
  std::optional<std::int32_t> window_tokens;  // none: full attention
  std::int32_t num_kv_heads = 0;
  std::int32_t head_size = 0;
  KvType type = KvType::kBf16;

  // Bytes that one token takes in all layers of the group, K and V.
  std::int64_t BytesPerToken() const {
    return std::int64_t{2} * num_layers * num_kv_heads * head_size * BytesPerElement(type);
  }
};

// What the KV pool must hold for a model. The Llama family has one group.
struct KvGeometry {
  std::vector<KvGroup> groups;
  std::int32_t block_size = 16;  // tokens per block

  std::int64_t BytesPerBlock(std::size_t group) const {
    return groups[group].BytesPerToken() * block_size;
  }
};

}  // namespace pagoda::base
