#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pagoda::base {

using Digest256 = std::array<std::uint8_t, 32>;

// Keyed BLAKE2b-256 over a list of fields. Each field is written as its tag, its length and its
// bytes, so that two lists give the same message only if they are the same list. Numbers are
// little-endian on every machine. Plain value: copyable, so that a common beginning is hashed once.
// Never allocates. Threads: const-free, one user.
class KeyedHasher {
 public:
  explicit KeyedHasher(const Digest256& key);

  void AddField(std::uint8_t tag, std::span<const std::uint8_t> bytes);
  void AddField(std::uint8_t tag, std::string_view text);
  void AddField(std::uint8_t tag, std::span<const std::uint32_t> words);
  void AddField(std::uint8_t tag, std::uint64_t number);

  // Ends the message. No call may follow.
  Digest256 Finish();

 private:
  void Append(std::span<const std::uint8_t> bytes);
  void AppendPrefix(std::uint8_t tag, std::uint64_t num_bytes);

  // libsodium's state, kept as bytes so that this header knows no library; sizes are asserted in
  // the .cc.
  alignas(64) std::array<std::byte, 384> state_;
};

}  // namespace pagoda::base
