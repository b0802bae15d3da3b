#include "base/keyed_hash.h"

#include <sodium.h>

#include <bit>
#include <cstring>

#include "base/check.h"

namespace pagoda::base {
namespace {

static_assert(sizeof(crypto_generichash_state) == 384);
static_assert(alignof(crypto_generichash_state) <= 64);
static_assert(std::endian::native == std::endian::little, "fields are written as they lie");

crypto_generichash_state* StateOf(std::array<std::byte, 384>& bytes) {
  return reinterpret_cast<crypto_generichash_state*>(bytes.data());
}

// libsodium picks its fastest code once; safe from several threads.
void InitialiseOnce() {
  static const bool ready = sodium_init() >= 0;
  PAGODA_CHECK(ready);
}

template <typename T>
std::span<const std::uint8_t> BytesOf(const T* items, std::size_t count) {
  return {reinterpret_cast<const std::uint8_t*>(items), count * sizeof(T)};
}

}  // namespace

KeyedHasher::KeyedHasher(const Digest256& key) : state_{} {
  InitialiseOnce();
  PAGODA_CHECK(crypto_generichash_init(StateOf(state_), key.data(), key.size(),
                                       std::tuple_size_v<Digest256>) == 0);
}

void KeyedHasher::AddField(std::uint8_t tag, std::span<const std::uint8_t> bytes) {
  AppendPrefix(tag, bytes.size());
  Append(bytes);
}

void KeyedHasher::AddField(std::uint8_t tag, std::string_view text) {
  AddField(tag, BytesOf(text.data(), text.size()));
}

void KeyedHasher::AddField(std::uint8_t tag, std::span<const std::uint32_t> words) {
  AddField(tag, BytesOf(words.data(), words.size()));
}

void KeyedHasher::AddField(std::uint8_t tag, std::uint64_t number) {
  AddField(tag, BytesOf(&number, 1));
}

Digest256 KeyedHasher::Finish() {
  Digest256 digest;
  PAGODA_CHECK(crypto_generichash_final(StateOf(state_), digest.data(), digest.size()) == 0);
  return digest;
}

void KeyedHasher::Append(std::span<const std::uint8_t> bytes) {
  PAGODA_CHECK(crypto_generichash_update(StateOf(state_), bytes.data(), bytes.size()) == 0);
}

void KeyedHasher::AppendPrefix(std::uint8_t tag, std::uint64_t num_bytes) {
  std::array<std::uint8_t, 9> prefix;
  prefix[0] = tag;
  std::memcpy(prefix.data() + 1, &num_bytes, sizeof(num_bytes));
  Append(prefix);
}

}  // namespace pagoda::base
