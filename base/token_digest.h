#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pagoda::base {

// SHA-256 of a secret that callers present: what is kept of it. Not salted and fast, so the secret
// itself must be too long to guess. Threads: any.
using TokenDigest = std::array<std::uint8_t, 32>;

// Whether it can be one at all: 1 to 512 characters of RFC 6750's alphabet (letters, digits and
// -._~+/, then '=').
inline constexpr std::size_t kMaxTokenBytes = 512;
bool IsTokenText(std::string_view token);

TokenDigest DigestOfToken(std::string_view token);

// Takes the same time wherever the two differ.
bool SameDigest(const TokenDigest& a, const TokenDigest& b);

// 64 hexadecimal digits, as sha256sum prints them.
std::string DigestToHex(const TokenDigest& digest);
std::optional<TokenDigest> DigestFromHex(std::string_view text);

}  // namespace pagoda::base
