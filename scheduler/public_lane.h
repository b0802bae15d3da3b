#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace pagoda::scheduler {

// Prefixes that the operator has registered, and the blocks that hold them: computed once before
// the server is ready, never evicted, and read by whoever's prompt begins with the same tokens. Not
// confidential: a reader learns from its receipt that its prompt began with one. A prefix may be
// limited to some tenants. Owner: SchedulerState. Grows while prefixes are registered, never after.
class PublicLane {
 public:
  PublicLane(std::int32_t block_size, std::int32_t num_blocks)
      : block_size_(block_size), prefix_of_block_(static_cast<std::size_t>(num_blocks), kNone) {}

  bool empty() const { return prefixes_.empty(); }

  // `blocks` hold `tokens`, the last one perhaps only in part. No readers: everybody.
  void Register(std::span<const base::TokenId> tokens, std::span<const base::BlockId> blocks,
                std::span<const base::TenantId> readers);

  // What of the lane a prompt of `tenant` begins with.
  struct Found {
    std::size_t num_full = 0;  // blocks, in `hits`
    // Of the block after those, tokens that agree: they are copied.
    std::optional<base::BlockId> copy_source;
    std::int32_t copied_tokens = 0;
  };
  // The prefix with the most tokens in common wins, ties go to the one registered first.
  Found Match(base::TenantId tenant, std::span<const base::TokenId> tokens,
              std::span<base::BlockId> hits) const;

  // Whether the block is in the lane, and the tenant may read it.
  bool MayRead(base::TenantId tenant, base::BlockId block) const;

 private:
  friend struct SnapshotAccess;
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Prefix {
    std::vector<base::TokenId> tokens;
    std::vector<base::BlockId> blocks;
    std::vector<base::TenantId> readers;
    bool IsFor(base::TenantId tenant) const;
  };

  std::int32_t block_size_;
  std::vector<Prefix> prefixes_;
  std::vector<std::uint32_t> prefix_of_block_;
};

}  // namespace pagoda::scheduler
