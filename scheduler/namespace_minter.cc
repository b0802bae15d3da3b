#include "scheduler/namespace_minter.h"

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/keyed_hash.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {
namespace {

// Fields of the derivation. The kind keeps the three derivations apart whatever the tenant and the
// salt are.
constexpr std::uint8_t kVersionField = 1;
constexpr std::uint8_t kKindField = 2;
constexpr std::uint8_t kTenantField = 3;
constexpr std::uint8_t kSaltField = 4;
constexpr std::uint8_t kRequestField = 5;

constexpr std::uint64_t kVersion = 1;
constexpr std::string_view kTenantKind = "tenant";
constexpr std::string_view kSaltedKind = "tenant and salt";
constexpr std::string_view kOneRequestKind = "one request";

base::KeyedHasher Start(const NamespaceMinter::Secret& secret, std::string_view kind) {
  base::KeyedHasher hasher(secret);
  hasher.AddField(kVersionField, kVersion);
  hasher.AddField(kKindField, kind);
  return hasher;
}

}  // namespace

absl::StatusOr<NamespaceKey> NamespaceMinter::Mint(std::string_view tenant_name,
                                                   std::optional<std::string_view> salt) const {
  if (salt.has_value() && salt->size() > kMaxSaltBytes) {
    return base::FieldError("cache_salt", absl::StrCat("has ", salt->size(), " bytes, at most ",
                                                       kMaxSaltBytes, " are allowed"));
  }
  base::KeyedHasher hasher = Start(secret_, salt.has_value() ? kSaltedKind : kTenantKind);
  if (!PAGODA_MUTANT(kTenantIgnored)) hasher.AddField(kTenantField, tenant_name);
  if (salt.has_value() && !PAGODA_MUTANT(kSaltIgnored)) hasher.AddField(kSaltField, *salt);
  return NamespaceKey(hasher.Finish());
}

NamespaceKey NamespaceMinter::MintForOneRequest(std::uint64_t request_id) const {
  base::KeyedHasher hasher = Start(secret_, kOneRequestKind);
  hasher.AddField(kRequestField, request_id);
  return NamespaceKey(hasher.Finish());
}

}  // namespace pagoda::scheduler
