#include "tests/scheduler/requests.h"

#include <cstdlib>
#include <numeric>
#include <string_view>

#include "base/status_macros.h"
#include "scheduler/mutants.h"
#include "scheduler/namespace_minter.h"

namespace pagoda::scheduler::testing {
#ifdef PAGODA_TEST_CHECKS
namespace {

// The fault that the environment asks for (scheduler/mutants.h), so that all these tests can be
// asked whether they would notice it.
const bool is_mutated = [] {
  const char* wanted = std::getenv("PAGODA_MUTANT");
  if (wanted == nullptr) return false;
#define PAGODA_SET_MUTANT(name, group, what) \
  if (std::string_view(#name).substr(1) == wanted) active_mutant = Mutant::name;
  PAGODA_MUTANTS(PAGODA_SET_MUTANT)
#undef PAGODA_SET_MUTANT
  return active_mutant != Mutant::kNone;
}();

}  // namespace
#endif

NamespaceKey KeyFor(const std::optional<std::string>& salt, std::uint32_t tenant) {
  const NamespaceMinter minter(NamespaceMinter::Secret{1, 2, 3});
  std::optional<std::string_view> view;
  if (salt.has_value()) view = *salt;
  return *minter.Mint(tenant == 0 ? "default" : "tenant" + std::to_string(tenant), view);
}

ModelLimits LimitsFor(const SchedulerConfig& config, std::uint32_t vocabulary_size,
                      std::uint32_t tenant) {
  ModelLimits limits;
  limits.vocabulary_size = vocabulary_size;
  limits.max_model_len = config.max_model_len;
  limits.block_size = config.block_size;
  limits.capacity_blocks = Scheduler::CapacityBlocks(config, base::TenantId(tenant));
  limits.max_num_seqs = Scheduler::MaxChoices(config, base::TenantId(tenant));
  return limits;
}

SchedulerConfig SmallConfig(std::int32_t pool_blocks, std::int32_t block_size,
                            std::int32_t max_num_seqs) {
  SchedulerConfig config;
  config.pool_blocks_per_group = {pool_blocks};
  config.block_size = config.key_domain.block_size = block_size;
  config.max_num_seqs = max_num_seqs;
  config.max_logit_rows_per_step = max_num_seqs;
  config.max_num_batched_tokens = 4 * block_size + max_num_seqs;
  config.max_model_len = (pool_blocks - 1) * block_size + 1;
  config.max_queued_requests = 64;
  config.max_namespaces = max_num_seqs + 2;
  return config;
}

absl::StatusOr<NewRequest> MakeRequest(const RequestSketch& sketch, const ModelLimits& limits,
                                       const SchedulerConfig& config, std::uint64_t epoch) {
  PAGODA_ASSIGN_OR_RETURN(NewRequest request,
                          NewRequest::Create(sketch.fields, limits, /*drawn_seed=*/7));
  PAGODA_RETURN_IF_ERROR(request.AttachPrompt(sketch.prompt, limits));
  request.id = base::RequestId(sketch.id);
  request.one_request_namespace = sketch.one_request_namespace;
  request.tenant = base::TenantId(sketch.tenant);
  const NamespaceKey key = KeyFor(sketch.salt, sketch.tenant);
  request.cache_namespace = key;
  if (sketch.attach_keys && !sketch.one_request_namespace) {
    KeyDomain domain = config.key_domain;
    domain.epoch = epoch;
    request.AttachKeys(key, BlockKeyer(key, domain));
  }
  return request;
}

std::vector<base::TokenId> Ascending(base::TokenId first, std::size_t count) {
  std::vector<base::TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

}  // namespace pagoda::scheduler::testing
