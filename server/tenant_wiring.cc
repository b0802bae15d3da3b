#include "server/tenant_wiring.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/ids.h"
#include "scheduler/scheduler.h"

namespace pagoda::server {
namespace {

// What the scheduler calls a bound, and what an operator set it with.
struct BoundName {
  std::string_view field, flag;
};
constexpr std::array kBoundNames = {
    BoundName{"block_size", "--block-size"},
    BoundName{"max_num_seqs", "--max-num-seqs"},
    BoundName{"max_num_batched_tokens", "--max-num-batched-tokens"},
    BoundName{"max_model_len", "--max-model-len"},
    BoundName{"max_queued_requests", "--max-queued-requests"},
    BoundName{"max_queued_tokens", "--max-queued-tokens"},
    BoundName{"cached_block_ttl_ms", "--cached-block-ttl in milliseconds"},
    BoundName{"public_blocks", "the blocks of --public-prefixes"},
    BoundName{"pool_blocks", "the blocks of --kv-cache-memory"},
    BoundName{"max_logit_rows_per_step",
              "the rows of a step, which follow from --max-num-seqs and --max-num-batched-tokens"},
    BoundName{"max_attention_chunks_per_step",
              "the attention of a step, which follows from --max-model-len, --max-num-seqs and "
              "--max-num-batched-tokens"}};

// The i-th tenant's keys are called "tenants[i].reserve_blocks" and stand in the file as
// "reserve-blocks".
std::string OperatorsName(const std::string& field, const std::vector<TenantSettings>& tenants) {
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const std::string place = absl::StrCat("tenants[", i, "].");
    if (!field.starts_with(place)) continue;
    std::string key = field.substr(place.size());
    std::ranges::replace(key, '_', '-');
    return absl::StrCat("tenant ", tenants[i].name, ", ", key);
  }
  const auto* const found = std::ranges::find(kBoundNames, field, &BoundName::field);
  return found == kBoundNames.end() ? field : std::string(found->flag);
}

}  // namespace

std::unique_ptr<Authenticator> MakeAuthenticator(const ServerConfig& config) {
  if (!config.tenant_settings.empty()) {
    return std::make_unique<Authenticator>(DrawSecret(), CredentialsOf(config.tenant_settings));
  }
  return std::make_unique<Authenticator>(
      config.anonymous ? Authenticator::Mode::kAnonymous : Authenticator::Mode::kOneTenant,
      DrawSecret());
}

std::vector<TenantCredentials> CredentialsOf(const std::vector<TenantSettings>& tenants) {
  std::vector<TenantCredentials> all;
  all.reserve(tenants.size());
  for (const TenantSettings& tenant : tenants) {
    all.push_back({.name = tenant.name,
                   .token_digests = tenant.token_digests,
                   .certificate_names = tenant.certificate_names});
  }
  return all;
}

std::vector<scheduler::TenantConfig> SchedulerTenantsOf(
    const std::vector<TenantSettings>& tenants) {
  std::vector<scheduler::TenantConfig> all;
  all.reserve(tenants.size());
  for (const TenantSettings& tenant : tenants) {
    all.push_back({.name = tenant.name,
                   .weight = tenant.weight,
                   .reserve_blocks = tenant.reserve_blocks,
                   .max_queued_requests = tenant.max_queued_requests,
                   .max_queued_tokens = tenant.max_queued_tokens,
                   .max_running = tenant.max_running,
                   .isolated = tenant.isolated});
  }
  return all;
}

std::vector<scheduler::ModelLimits> LimitsOf(const scheduler::SchedulerConfig& scheduling,
                                             const scheduler::ModelLimits& model) {
  const std::size_t num_tenants = std::max<std::size_t>(1, scheduling.tenants.size());
  std::vector<scheduler::ModelLimits> all(num_tenants, model);
  for (std::uint32_t i = 0; i < num_tenants; ++i) {
    const base::TenantId tenant{i};
    all[i].capacity_blocks = scheduler::Scheduler::CapacityBlocks(scheduling, tenant);
    all[i].max_num_seqs = scheduler::Scheduler::MaxChoices(scheduling, tenant);
  }
  return all;
}

absl::Status CheckScheduling(const ServerConfig& config,
                             const scheduler::SchedulerConfig& scheduling) {
  absl::Status status = scheduler::CheckConfig(scheduling);
  const std::string field = base::FieldOf(status);
  if (field.empty()) return status;
  const absl::string_view rest = status.message().substr(field.size());  // ": is ..."
  const std::string file =
      config.tenant_settings.empty() ? "" : absl::StrCat("--tenants ", config.tenants, ": ");
  return absl::Status(status.code(),
                      absl::StrCat(file, OperatorsName(field, config.tenant_settings), rest));
}

absl::StatusOr<std::vector<TenantSettings>> InOrderOf(const std::vector<TenantSettings>& running,
                                                      std::vector<TenantSettings> read) {
  std::vector<TenantSettings> ordered;
  for (const TenantSettings& known : running) {
    const auto found = std::ranges::find(read, known.name, &TenantSettings::name);
    if (found == read.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tenant ", known.name,
                       " is no longer in the file; to take one away restart the server, "
                       "or leave it without credentials"));
    }
    if (found->isolated != known.isolated) {
      return absl::InvalidArgumentError(
          absl::StrCat("tenant ", known.name, ", isolated: is ", known.isolated ? "true" : "false",
                       " while the server runs; restart it to change that"));
    }
    ordered.push_back(*found);
  }
  for (const TenantSettings& tenant : read) {
    if (std::ranges::find(running, tenant.name, &TenantSettings::name) != running.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tenant ", tenant.name, " is unknown; restart the server to add one"));
  }
  return ordered;
}

std::vector<TenantBounds> BoundsOf(const ServerConfig& config) {
  if (config.tenant_settings.empty()) {
    return {{.name = "default",
             .max_requests = config.max_queued_requests,
             .max_queued_tokens = config.max_queued_tokens}};
  }
  std::vector<TenantBounds> all;
  all.reserve(config.tenant_settings.size());
  for (const TenantSettings& tenant : config.tenant_settings) {
    all.push_back({.name = tenant.name,
                   .max_requests = tenant.max_queued_requests,
                   .max_queued_tokens = tenant.max_queued_tokens});
  }
  return all;
}

}  // namespace pagoda::server
