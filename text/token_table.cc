#include "text/token_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"

namespace pagoda::text {

TokenTable::TokenTable(std::size_t num_tokens)
    : bytes_(num_tokens), slots_(std::bit_ceil(std::max<std::size_t>(2 * num_tokens, 2))) {}

void TokenTable::SetBytes(base::TokenId id, std::string bytes) {
  PAGODA_CHECK(id < bytes_.size());
  PAGODA_CHECK(bytes_[id].empty());
  bytes_[id] = std::move(bytes);
}

bool TokenTable::MakeFindable(base::TokenId id) {
  PAGODA_CHECK(id < bytes_.size());
  std::uint32_t& slot = slots_[SlotOf(bytes_[id])];
  if (slot != 0) return false;
  slot = id + 1;
  return true;
}

std::optional<base::TokenId> TokenTable::Find(std::string_view bytes) const {
  const std::uint32_t slot = slots_[SlotOf(bytes)];
  if (slot == 0) return std::nullopt;
  return slot - 1;
}

std::size_t TokenTable::SlotOf(std::string_view bytes) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t index = std::hash<std::string_view>{}(bytes)&mask;
  while (slots_[index] != 0 && bytes_[slots_[index] - 1] != bytes) index = (index + 1) & mask;
  return index;
}

}  // namespace pagoda::text
