#include "scheduler/public_lane.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {

bool PublicLane::Prefix::IsFor(base::TenantId tenant) const {
  return readers.empty() || PAGODA_MUTANT(kLaneReadersIgnored) ||
         std::ranges::find(readers, tenant) != readers.end();
}

void PublicLane::Register(std::span<const base::TokenId> tokens,
                          std::span<const base::BlockId> blocks,
                          std::span<const base::TenantId> readers) {
  PAGODA_CHECK(!tokens.empty());
  PAGODA_CHECK(blocks.size() == base::DivUp(tokens.size(), static_cast<std::size_t>(block_size_)));
  for (const base::BlockId block : blocks) {
    PAGODA_CHECK(prefix_of_block_[block.value()] == kNone);
    prefix_of_block_[block.value()] = static_cast<std::uint32_t>(prefixes_.size());
  }
  prefixes_.push_back({.tokens = {tokens.begin(), tokens.end()},
                       .blocks = {blocks.begin(), blocks.end()},
                       .readers = {readers.begin(), readers.end()}});
}

PublicLane::Found PublicLane::Match(base::TenantId tenant, std::span<const base::TokenId> tokens,
                                    std::span<base::BlockId> hits) const {
  const Prefix* best = nullptr;
  std::size_t most = 0;
  for (const Prefix& prefix : prefixes_) {
    if (!prefix.IsFor(tenant)) continue;
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(prefix.tokens, tokens).in1 -
                                                 prefix.tokens.begin());
    if (common <= most) continue;
    most = common;
    best = &prefix;
  }
  Found found;
  if (best == nullptr) return found;
  const auto block_size = static_cast<std::size_t>(block_size_);
  found.num_full = most / block_size;
  std::ranges::copy(std::span(best->blocks).first(found.num_full), hits.begin());
  // At least one token of the prompt stays to be computed.
  const std::size_t rest = std::min(most, tokens.size() - 1);
  if (rest > found.num_full * block_size) {
    found.copy_source = best->blocks[found.num_full];
    found.copied_tokens = static_cast<std::int32_t>(rest - found.num_full * block_size);
  }
  return found;
}

bool PublicLane::MayRead(base::TenantId tenant, base::BlockId block) const {
  const std::uint32_t prefix = prefix_of_block_[block.value()];
  return prefix != kNone && prefixes_[prefix].IsFor(tenant);
}

}  // namespace pagoda::scheduler
