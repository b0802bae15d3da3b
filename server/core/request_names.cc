#include "server/core/request_names.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace pagoda::server {
namespace {

constexpr std::uint8_t kPurposeField = 1;
constexpr std::uint8_t kTenantField = 2;
constexpr std::uint8_t kNumberField = 3;
constexpr std::string_view kPurpose = "pagoda request name";

std::uint64_t WordAt(const base::Digest256& digest, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, digest.data() + index * sizeof word, sizeof word);
  return word;
}

}  // namespace

RequestName RequestNames::Next(std::size_t place) {
  PAGODA_CHECK(place < num_named_.size());
  base::KeyedHasher hasher(secret_);
  hasher.AddField(kPurposeField, kPurpose);
  hasher.AddField(kTenantField, std::uint64_t{place});
  hasher.AddField(kNumberField, num_named_[place].fetch_add(1));
  const base::Digest256 digest = hasher.Finish();
  return {.id = base::RequestId(next_id_.fetch_add(1)),
          .wire_id = absl::StrFormat("%016x", WordAt(digest, 0)),
          .drawn_seed = WordAt(digest, 1)};
}

}  // namespace pagoda::server
