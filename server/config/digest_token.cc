#include "server/config/digest_token.h"

#include "absl/strings/str_cat.h"
#include "base/token_digest.h"

namespace pagoda::server {
namespace {

// Digests are neither salted nor slow, so that they can be compared at every call: only the
// token's length protects it. 32 characters of base64 are 192 random bits.
constexpr std::size_t kLeastBytes = 32;

}  // namespace

absl::StatusOr<std::string> DigestTokenFrom(std::istream& input) {
  std::string token;
  for (char c = 0; input.get(c) && token.size() <= base::kMaxTokenBytes + 2;) token += c;
  if (token.ends_with('\n')) token.pop_back();
  if (token.ends_with('\r')) token.pop_back();
  if (token.size() < kLeastBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the token has ", token.size(),
                                                   " characters; draw at least ", kLeastBytes,
                                                   ", as `openssl rand -base64 33` does"));
  }
  if (!base::IsTokenText(token)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token is longer than ", base::kMaxTokenBytes,
                     " characters, or has others than letters, digits and -._~+/ with '=' at the "
                     "end; draw another, as `openssl rand -base64 33` does"));
  }
  return base::DigestToHex(base::DigestOfToken(token));
}

}  // namespace pagoda::server
