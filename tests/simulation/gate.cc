#include "tests/simulation/gate.h"

#include <algorithm>
#include <string_view>

#include "base/status_macros.h"
#include "scheduler/namespace_minter.h"

namespace pagoda::simulation {
namespace {

using scheduler::NamespaceKey;
using scheduler::NamespaceMinter;
using scheduler::NewRequest;
using scheduler::Scheduler;
using scheduler::SchedulerConfig;

}  // namespace

// While new shares wait to take effect, only what fits both is let in.
std::int32_t Gate::CapacityBlocks(base::TenantId tenant) const {
  const std::int32_t now = Scheduler::CapacityBlocks(state_.config, tenant);
  if (state_.pending_tenants.empty()) return now;
  SchedulerConfig next = state_.config;
  next.tenants = state_.pending_tenants;
  return std::min(now, Scheduler::CapacityBlocks(next, tenant));
}

absl::StatusOr<NewRequest> Gate::Make(const RequestScript& script, base::RequestId id) const {
  scheduler::ModelLimits limits;
  limits.vocabulary_size = kVocabulary;
  limits.max_model_len = state_.config.max_model_len;
  limits.block_size = state_.config.block_size;
  limits.capacity_blocks = CapacityBlocks(script.tenant);
  limits.max_num_seqs = Scheduler::MaxChoices(state_.config, script.tenant);
  PAGODA_ASSIGN_OR_RETURN(NewRequest request,
                          NewRequest::Create(script.fields, limits, /*drawn_seed=*/7));
  PAGODA_RETURN_IF_ERROR(request.AttachPrompt(script.prompt, limits));
  request.id = id;
  request.tenant = script.tenant;
  request.one_request_namespace = script.one_request_namespace;
  const NamespaceMinter minter(NamespaceMinter::Secret{1, 2, 3});
  std::optional<std::string_view> salt;
  if (script.salt.has_value()) salt = *script.salt;
  const std::string name = "tenant " + std::to_string(script.tenant.value());
  const NamespaceKey key = *minter.Mint(name, salt);
  request.cache_namespace = key;
  if (script.attach_keys && !script.one_request_namespace) {
    scheduler::KeyDomain domain = state_.config.key_domain;
    domain.epoch = state_.cache.epoch(script.tenant);
    request.AttachKeys(key, scheduler::BlockKeyer(key, domain));
  }
  return request;
}

bool Gate::HasRoom(const RequestScript& script) const {
  const auto tenant = static_cast<std::size_t>(script.tenant.value());
  return static_cast<std::int32_t>(state_.queues[tenant].size()) <
         state_.tenants[tenant].config.max_queued_requests;
}

}  // namespace pagoda::simulation
