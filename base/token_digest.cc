#include "base/token_digest.h"

#include <sodium.h>

#include <algorithm>

#include "base/check.h"

namespace pagoda::base {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::optional<std::uint8_t> DigitOf(char c) {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t value = kDigits.find(c);
  if (value == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint8_t>(value);
}

bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/").find(c) != std::string_view::npos;
}

}  // namespace

bool IsTokenText(std::string_view token) {
  const std::string_view body = token.substr(0, token.find_last_not_of('=') + 1);
  return !body.empty() && token.size() <= kMaxTokenBytes &&
         std::ranges::all_of(body, IsTokenCharacter);
}

TokenDigest DigestOfToken(std::string_view token) {
  TokenDigest digest;
  static_assert(std::tuple_size_v<TokenDigest> == crypto_hash_sha256_BYTES);
  PAGODA_CHECK(crypto_hash_sha256(digest.data(),
                                  reinterpret_cast<const unsigned char*>(token.data()),
                                  token.size()) == 0);
  return digest;
}

bool SameDigest(const TokenDigest& a, const TokenDigest& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string DigestToHex(const TokenDigest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0x0F];
  }
  return text;
}

std::optional<TokenDigest> DigestFromHex(std::string_view text) {
  TokenDigest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = DigitOf(text[2 * i]);
    const auto low = DigitOf(text[2 * i + 1]);
    if (!high.has_value() || !low.has_value()) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>((*high << 4) | *low);
  }
  return digest;
}

}  // namespace pagoda::base
