#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pagoda::base {

// An integer with a meaning: a TenantId cannot be passed where a SlotId is wanted. Plain data,
// usable as an array index through value() and as a hash key.
template <typename Tag, typename Rep>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  Rep value_ = 0;
};

}  // namespace pagoda::base

template <typename Tag, typename Rep>
struct std::hash<pagoda::base::StrongId<Tag, Rep>> {
  std::size_t operator()(pagoda::base::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
