#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace pagoda::base {

// Restricts the next token of a sequence (a grammar). Such a sequence is never planned ahead. No
// implementation yet; the seam stands so that one can be added without a change of the engine.
class TokenConstraint {
 public:
  static constexpr std::uint32_t kStartState = 0;

  virtual ~TokenConstraint() = default;
  // Writes one bit per vocabulary entry, 1 = allowed.
  virtual void FillAllowed(std::uint32_t state, std::span<std::uint32_t> bitmask) const = 0;
  virtual std::uint32_t Advance(std::uint32_t state, TokenId token) const = 0;
  virtual bool IsComplete(std::uint32_t state) const = 0;
};

}  // namespace pagoda::base
