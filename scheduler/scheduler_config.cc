// The checks of a config, and the bounds that follow from others. Every floor is checked against
// what a tenant needs in order to move when it has nothing but its floors.
#include "scheduler/scheduler_config.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "scheduler/block_pool.h"

namespace pagoda::scheduler {
namespace {

constexpr std::int32_t kChunkRows = 64;
constexpr std::int32_t kChunkContext = 256;

std::int64_t SumOfWeights(std::span<const TenantConfig> tenants) {
  std::int64_t sum = 0;
  for (const TenantConfig& tenant : tenants) sum += tenant.weight;
  return sum;
}

// The largest cost a step that keeps these floors can have: every sequence one chunk row, and the
// tokens' own.
std::int64_t EnoughAttentionChunks(const SchedulerConfig& config, const StepFloors& floors) {
  return (std::int64_t{floors.slots} + base::DivUp(floors.step.tokens, kChunkRows)) *
         base::DivUp(config.max_model_len, kChunkContext);
}

absl::Status CheckAtLeast(std::string_view field, std::int64_t value, std::int64_t least,
                          std::string_view why) {
  if (value >= least) return absl::OkStatus();
  return base::FieldError(field, absl::StrCat("is ", value, ", at least ", least, " is needed (",
                                              std::string(why), ")"));
}

absl::Status CheckBasics(const SchedulerConfig& c) {
  if (c.pool_blocks_per_group.size() != 1) {
    return absl::UnimplementedError(absl::StrCat("a KV pool of ", c.pool_blocks_per_group.size(),
                                                 " groups; only models with one are supported"));
  }
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("block_size", c.block_size, 1, "a block holds tokens"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_num_seqs", c.max_num_seqs, 1, "one request runs"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_model_len", c.max_model_len, 2, "a prompt and a reply"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("public_blocks", c.public_blocks, 0, "a number of blocks"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("pool_blocks", c.pool_blocks_per_group[0],
                                      std::int64_t{2} + c.public_blocks,
                                      "the null block, the public ones and one that is used"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("cached_block_ttl_ms", c.cached_block_ttl_ms, 0, "an age"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_queued_requests", c.max_queued_requests, 1, "a queue"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_in_flight", c.max_in_flight, 1, "a step runs"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_namespaces", c.max_namespaces, c.max_num_seqs,
                                      "one for every running request"));
  if (c.key_domain.block_size != c.block_size) {
    return base::FieldError(
        "key_domain.block_size",
        absl::StrCat("is ", c.key_domain.block_size, ", block_size is ", c.block_size));
  }
  return absl::OkStatus();
}

// What one tenant's entries say, each by itself.
absl::Status CheckEntries(const SchedulerConfig& c) {
  for (std::size_t i = 0; i < c.tenants.size(); ++i) {
    const TenantConfig& tenant = c.tenants[i];
    const auto check = [&](std::string_view key, std::int64_t value, std::int64_t least,
                           std::string_view why) {
      const std::string field = absl::StrCat("tenants[", i, "].", std::string(key));
      return CheckAtLeast(field, value, least, absl::StrCat(tenant.name, ": ", std::string(why)));
    };
    PAGODA_RETURN_IF_ERROR(check("weight", tenant.weight, 1, "a share of every step"));
    PAGODA_RETURN_IF_ERROR(
        check("reserve_blocks", tenant.reserve_blocks, tenant.isolated, "what it can ever hold"));
    PAGODA_RETURN_IF_ERROR(
        check("max_queued_requests", tenant.max_queued_requests, 0, "0: an even share"));
    PAGODA_RETURN_IF_ERROR(
        check("max_queued_tokens", tenant.max_queued_tokens, 0, "0: an even share"));
    PAGODA_RETURN_IF_ERROR(check("max_running", tenant.max_running, 0, "0: no limit of its own"));
  }
  return absl::OkStatus();
}

// What all tenants are promised fits into what there is.
absl::Status CheckSums(const SchedulerConfig& c) {
  const std::int32_t num_usable = c.pool_blocks_per_group[0] - 1 - c.public_blocks;
  std::int64_t reserves = 0, requests = 0, tokens = 0;
  for (const TenantConfig& tenant : c.tenants) {
    reserves += tenant.reserve_blocks;
    requests += tenant.max_queued_requests;
    tokens += tenant.max_queued_tokens;
    PAGODA_RETURN_IF_ERROR(
        CheckAtLeast("max_queued_requests", tenant.max_queued_requests, 1,
                     absl::StrCat("an even share of it for each tenant, as for ", tenant.name)));
  }
  PAGODA_RETURN_IF_ERROR(
      CheckAtLeast("pool_blocks", c.pool_blocks_per_group[0],
                   1 + c.public_blocks + reserves + BlockPool::WatermarkOf(num_usable),
                   "the null block, the public ones, all reserves and the watermark"));
  PAGODA_RETURN_IF_ERROR(
      CheckAtLeast("max_queued_requests", c.max_queued_requests, requests, "the sum over tenants"));
  return CheckAtLeast("max_queued_tokens", c.max_queued_tokens, tokens, "the sum over tenants");
}

// With its floors alone a tenant must be able to move: a block of prefill beside a token for every
// slot, a row for every slot, and the attention of all that.
absl::Status CheckFloors(const SchedulerConfig& c, base::TenantId tenant) {
  const TenantConfig& own = c.tenants[tenant.value()];
  const std::int64_t weights = SumOfWeights(c.tenants);
  const StepFloors floors = FloorsOf(c, c.tenants, tenant);
  const auto check = [&](std::string_view field, std::int64_t whole, std::int64_t part,
                         std::int64_t least, std::string_view why) -> absl::Status {
    if (part >= least) return absl::OkStatus();
    return base::FieldError(
        field, absl::StrCat("is ", whole, ", of which tenant ", own.name, " with weight ",
                            own.weight, " of ", weights, " has ", part, "; at least ", least,
                            " is needed (", std::string(why), ")"));
  };
  PAGODA_RETURN_IF_ERROR(
      check("max_num_seqs", c.max_num_seqs, floors.slots, 1, "one of its requests runs"));
  PAGODA_RETURN_IF_ERROR(check("max_num_batched_tokens", c.max_num_batched_tokens,
                               floors.step.tokens, std::int64_t{c.block_size} + floors.slots,
                               "a token for each of its sequences and a block of prefill"));
  PAGODA_RETURN_IF_ERROR(check("max_logit_rows_per_step", c.max_logit_rows_per_step,
                               floors.step.logit_rows, floors.slots,
                               "a row for each of its sequences"));
  return check("max_attention_chunks_per_step", c.max_attention_chunks_per_step,
               floors.step.attention_chunks, EnoughAttentionChunks(c, floors),
               "the largest step that keeps its tokens");
}

}  // namespace

StepFloors FloorsOf(const SchedulerConfig& config, std::span<const TenantConfig> tenants,
                    base::TenantId tenant) {
  const std::int64_t weight = tenants[tenant.value()].weight;
  const std::int64_t weights = SumOfWeights(tenants);
  const auto part = [&](std::int64_t whole) {
    return static_cast<std::int32_t>(whole * weight / weights);
  };
  return {.slots = part(config.max_num_seqs),
          .step = {.tokens = part(config.max_num_batched_tokens),
                   .logit_rows = part(config.max_logit_rows_per_step),
                   .attention_chunks = part(config.max_attention_chunks_per_step)}};
}

std::int32_t DeriveChunks(const SchedulerConfig& config) {
  const std::int64_t weights = SumOfWeights(config.tenants);
  const StepFloors all{.slots = config.max_num_seqs,
                       .step = {.tokens = config.max_num_batched_tokens}};
  std::int64_t enough = EnoughAttentionChunks(config, all);
  for (std::uint32_t t = 0; t < config.tenants.size(); ++t) {
    const StepFloors floors = FloorsOf(config, config.tenants, base::TenantId(t));
    const std::int64_t needed = EnoughAttentionChunks(config, floors);
    enough = std::max(enough, base::DivUp(needed * weights, config.tenants[t].weight + 0L));
  }
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(enough, std::numeric_limits<std::int32_t>::max()));
}

std::int32_t CapacityOf(std::int32_t num_usable, std::span<const TenantConfig> tenants,
                        base::TenantId tenant) {
  const TenantConfig& own = tenants[tenant.value()];
  if (own.isolated) return own.reserve_blocks;
  std::int32_t common = num_usable;
  for (const TenantConfig& each : tenants) common -= each.reserve_blocks;
  return own.reserve_blocks + common;
}

absl::Status CheckConfig(const SchedulerConfig& given) {
  PAGODA_RETURN_IF_ERROR(CheckBasics(given));
  PAGODA_RETURN_IF_ERROR(CheckEntries(given));
  const SchedulerConfig c = WithDefaults(given);
  PAGODA_RETURN_IF_ERROR(CheckSums(c));
  for (std::uint32_t t = 0; t < c.tenants.size(); ++t) {
    PAGODA_RETURN_IF_ERROR(CheckFloors(c, base::TenantId(t)));
  }
  return absl::OkStatus();
}

SchedulerConfig WithDefaults(SchedulerConfig config) {
  if (config.tenants.empty()) config.tenants = {{.name = "default"}};
  const auto num_tenants = static_cast<std::int32_t>(config.tenants.size());
  for (TenantConfig& tenant : config.tenants) {
    if (tenant.max_queued_requests == 0) {
      tenant.max_queued_requests = config.max_queued_requests / num_tenants;
    }
    if (tenant.max_queued_tokens == 0) {
      tenant.max_queued_tokens = config.max_queued_tokens / num_tenants;
    }
  }
  if (config.max_attention_chunks_per_step == 0) {
    config.max_attention_chunks_per_step = DeriveChunks(config);
  }
  return config;
}

}  // namespace pagoda::scheduler
