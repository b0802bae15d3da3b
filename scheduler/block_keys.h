#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/kv_geometry.h"
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

// Identity of a block's content: keyed BLAKE2b-256 over the fields listed in README.md, "Identity".
// Never truncated.
struct BlockKey {
  std::array<std::uint8_t, 32> bytes{};
  friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};

// Everything but parent and tokens that decides a block's content. Constant for one loaded model.
struct KeyDomain {
  std::array<std::uint8_t, 32> model_digest{};
  std::uint32_t kv_group = 0;
  base::KvType kv_type = base::KvType::kBf16;
  std::uint32_t layout_version = 1;
  std::int32_t block_size = 16;
  std::string position_scheme;
  std::string numerics_id;  // backend, instruction class, activation type, contract version,
                            // parallel degree
  std::uint64_t epoch = 0;
};

// Makes the keys of one namespace: the constant fields are folded into the hash key once, so a
// block costs one pass over its tokens. Text workers key prompts, the engine thread keys generated
// blocks. Plain value; const methods from any thread.
class BlockKeyer {
 public:
  BlockKeyer(const NamespaceKey& cache_namespace, const KeyDomain& domain);

  // The parent of a sequence's first block.
  const BlockKey& root() const { return root_; }
  std::uint64_t epoch() const { return epoch_; }
  std::int32_t block_size() const { return block_size_; }

  // Requires: 1 <= tokens.size() <= block_size. Fewer than block_size give the key of a partial
  // block (other tag).
  BlockKey Key(const BlockKey& parent, std::span<const base::TokenId> tokens) const;
  // The keys of every full block of `tokens`, in order.
  std::vector<BlockKey> KeysOf(std::span<const base::TokenId> tokens) const;
  // Appends the keys of the full blocks of `tokens` that `keys` lacks. Never allocates when `keys`
  // has the room.
  void ExtendKeys(std::span<const base::TokenId> tokens, std::vector<BlockKey>& keys) const;

 private:
  std::array<std::uint8_t, 32> folded_key_{};
  BlockKey root_;
  std::uint64_t epoch_ = 0;
  std::int32_t block_size_ = 0;
};

}  // namespace pagoda::scheduler
