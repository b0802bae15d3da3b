#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace pagoda::scheduler {

// Who may share cached blocks with whom: the key of the hash under which a request's blocks are
// indexed. Derived by the server (NamespaceMinter) from the authenticated tenant and the caller's
// salt, which can only narrow it. A value without a public constructor: nothing but the minter
// makes one; a snapshot makes again what one had made.
class NamespaceKey {
 public:
  static constexpr std::size_t kNumBytes = 32;
  const std::array<std::uint8_t, kNumBytes>& bytes() const { return bytes_; }
  friend auto operator<=>(const NamespaceKey&, const NamespaceKey&) = default;

 private:
  friend struct SnapshotAccess;
  friend class NamespaceMinter;
  explicit NamespaceKey(const std::array<std::uint8_t, kNumBytes>& bytes) : bytes_(bytes) {}

  std::array<std::uint8_t, kNumBytes> bytes_;
};

}  // namespace pagoda::scheduler
