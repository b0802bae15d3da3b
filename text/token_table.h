#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

// The bytes of each token, and which token has given bytes. A token may be entered without being
// findable: a control token's spelling is not what plain text means by the same bytes. Filled by
// its owner, then const; threads: any.
class TokenTable {
 public:
  // Room for `num_tokens` tokens, all of them empty and not findable.
  explicit TokenTable(std::size_t num_tokens);

  // Requires: id in range, bytes not set yet.
  void SetBytes(base::TokenId id, std::string bytes);
  // Returns: false when another token is already found under the same bytes.
  bool MakeFindable(base::TokenId id);

  std::string_view Bytes(base::TokenId id) const { return bytes_[id]; }
  std::optional<base::TokenId> Find(std::string_view bytes) const;
  std::size_t size() const { return bytes_.size(); }

 private:
  // Where the search for `bytes` ends: the slot that holds it, or the empty one where it would go.
  std::size_t SlotOf(std::string_view bytes) const;

  std::vector<std::string> bytes_;
  std::vector<std::uint32_t> slots_;  // id + 1, or 0; open addressing, at most half full
};

}  // namespace pagoda::text
