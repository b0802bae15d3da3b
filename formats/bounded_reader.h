#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace pagoda::formats {

// a + b and a * b, or nothing when the result does not fit.
constexpr std::optional<std::uint64_t> CheckedAdd(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
constexpr std::optional<std::uint64_t> CheckedMultiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// A cursor over bytes that someone else wrote. It never moves past the end, and no length is
// believed before it was compared with what is left. Numbers are little-endian. A refused call
// leaves the cursor where it was. Threads: one.
class BoundedReader {
 public:
  explicit BoundedReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t remaining() const { return bytes_.size() - offset_; }

  template <typename T>
  [[nodiscard]] bool TryRead(T& value) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool TryReadBytes(std::uint64_t count, std::span<const std::byte>& bytes) {
    if (remaining() < count) return false;
    bytes = bytes_.subspan(offset_, count);
    offset_ += count;
    return true;
  }

  [[nodiscard]] bool TryReadText(std::uint64_t length, std::string_view& text) {
    std::span<const std::byte> bytes;
    if (!TryReadBytes(length, bytes)) return false;
    text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t offset_ = 0;
};

}  // namespace pagoda::formats
