// The checks of a config, and the bounds that follow from others.
#include "scheduler/scheduler_config.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace pagoda::scheduler {
namespace {

// The largest cost a step that keeps the token budget can have: every sequence one chunk row, and
// the tokens' own.
std::int64_t EnoughAttentionChunks(const SchedulerConfig& config) {
  constexpr std::int32_t kChunkRows = 64;
  constexpr std::int32_t kChunkContext = 256;
  return (std::int64_t{config.max_num_seqs} +
          base::DivUp(config.max_num_batched_tokens, kChunkRows)) *
         base::DivUp(config.max_model_len, kChunkContext);
}

absl::Status CheckAtLeast(std::string_view field, std::int64_t value, std::int64_t least,
                          std::string_view why) {
  if (value >= least) return absl::OkStatus();
  return base::FieldError(field, absl::StrCat("is ", value, ", at least ", least, " is needed (",
                                              std::string(why), ")"));
}

absl::Status CheckTenants(const SchedulerConfig& c) {
  std::int64_t reserves = 0;
  for (std::size_t i = 0; i < c.tenants.size(); ++i) {
    const TenantConfig& tenant = c.tenants[i];
    const std::string key = absl::StrCat("tenants[", i, "].");
    PAGODA_RETURN_IF_ERROR(CheckAtLeast(key + "weight", tenant.weight, 1, "a share"));
    PAGODA_RETURN_IF_ERROR(
        CheckAtLeast(key + "reserve_blocks", tenant.reserve_blocks, 0, "a number of blocks"));
    reserves += tenant.reserve_blocks;
  }
  return CheckAtLeast("pool_blocks", c.pool_blocks_per_group[0], 1 + c.public_blocks + reserves,
                      "the null block, the public ones and all reserves");
}

}  // namespace

absl::Status CheckConfig(const SchedulerConfig& c) {
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
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_num_batched_tokens", c.max_num_batched_tokens,
                                      std::int64_t{c.block_size} + c.max_num_seqs,
                                      "a token for every sequence and a block of prefill"));
  PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_logit_rows_per_step", c.max_logit_rows_per_step,
                                      c.max_num_seqs, "a row for every sequence"));
  if (c.max_attention_chunks_per_step != 0) {
    PAGODA_RETURN_IF_ERROR(CheckAtLeast("max_attention_chunks_per_step",
                                        c.max_attention_chunks_per_step, EnoughAttentionChunks(c),
                                        "the largest step that keeps the token budget"));
  }
  PAGODA_RETURN_IF_ERROR(CheckTenants(c));
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

SchedulerConfig WithDefaults(SchedulerConfig config) {
  if (config.max_attention_chunks_per_step == 0) {
    config.max_attention_chunks_per_step = static_cast<std::int32_t>(EnoughAttentionChunks(config));
  }
  if (config.tenants.empty()) config.tenants = {{.name = "default"}};
  for (TenantConfig& tenant : config.tenants) {
    const auto share = static_cast<std::int64_t>(config.tenants.size());
    if (tenant.max_queued_requests == 0) {
      tenant.max_queued_requests = static_cast<std::int32_t>(config.max_queued_requests / share);
    }
    if (tenant.max_queued_tokens == 0) tenant.max_queued_tokens = config.max_queued_tokens / share;
  }
  return config;
}

}  // namespace pagoda::scheduler
