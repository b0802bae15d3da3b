#include "server/public_prefixes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/status_macros.h"
#include "scheduler/scheduler.h"
#include "server/core/prompt_encoding.h"

namespace pagoda::server {
namespace {

absl::Status About(const ServerConfig& config, const std::string& prefix, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--public-prefixes ", config.public_prefixes, ": prefix ", prefix, ": ", what));
}

PromptInput PromptOf(const PublicPrefixSettings& prefix) {
  if (!prefix.is_system_message) {
    TextPrompt plain;
    plain.text = prefix.text;
    return plain;
  }
  ChatPrompt chat;
  chat.messages.push_back({.role = "system", .content = prefix.text});
  chat.add_generation_prompt = false;
  return chat;
}

std::vector<base::TenantId> ReadersOf(const ServerConfig& config,
                                      const PublicPrefixSettings& prefix) {
  std::vector<base::TenantId> readers;
  for (std::uint32_t i = 0; i < config.tenant_settings.size(); ++i) {
    const std::string& name = config.tenant_settings[i].name;
    if (std::ranges::find(prefix.tenants, name) != prefix.tenants.end()) {
      readers.emplace_back(i);
    }
  }
  return readers;
}

}  // namespace

absl::StatusOr<std::vector<EncodedPrefix>> EncodePrefixes(const ServerConfig& config,
                                                          const ServedModel& model) {
  std::vector<EncodedPrefix> all;
  for (const PublicPrefixSettings& prefix : config.prefix_settings) {
    absl::StatusOr<EncodedPrompt> encoded = EncodePrompt(PromptOf(prefix), model);
    if (!encoded.ok()) return About(config, prefix.name, encoded.status().message());
    all.push_back({.name = prefix.name,
                   .tokens = std::move(encoded->tokens),
                   .readers = ReadersOf(config, prefix)});
  }
  return all;
}

std::int32_t PublicBlocksOf(std::span<const EncodedPrefix> prefixes, std::int32_t block_size) {
  std::int32_t blocks = 0;
  for (const EncodedPrefix& prefix : prefixes) {
    blocks += base::DivUp(static_cast<std::int32_t>(prefix.tokens.size()), block_size);
  }
  return blocks;
}

absl::Status CheckPrefixes(const ServerConfig& config, std::span<const EncodedPrefix> prefixes,
                           const scheduler::SchedulerConfig& scheduling) {
  for (const EncodedPrefix& prefix : prefixes) {
    const auto length = static_cast<std::int64_t>(prefix.tokens.size());
    if (length < scheduling.max_model_len) continue;
    return About(config, prefix.name,
                 absl::StrCat("has ", length, " tokens; with one more it must fit into ",
                              scheduling.max_model_len, " (--max-model-len)"));
  }
  const std::int32_t left = scheduling.pool_blocks_per_group[0] - 1 - scheduling.public_blocks;
  const std::int32_t needed = base::DivUp(scheduling.max_model_len - 1, scheduling.block_size);
  if (prefixes.empty() || left >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--public-prefixes ", config.public_prefixes, ": they take ", scheduling.public_blocks,
      " of the pool's ", scheduling.pool_blocks_per_group[0] - 1, " blocks; of the ",
      std::max(left, 0), " left a request of full length needs ", needed,
      "; shorten them, raise --kv-cache-memory or lower --max-model-len"));
}

absl::Status CheckPrefixesAreHeld(const ServerConfig& config,
                                  std::span<const EncodedPrefix> prefixes,
                                  const scheduler::SchedulerConfig& scheduling) {
  std::int32_t most = scheduler::Scheduler::CapacityBlocks(scheduling);
  for (std::size_t t = 1; t < scheduling.tenants.size(); ++t) {
    const base::TenantId tenant(static_cast<std::uint32_t>(t));
    most = std::max(most, scheduler::Scheduler::CapacityBlocks(scheduling, tenant));
  }
  for (const EncodedPrefix& prefix : prefixes) {
    const auto length = static_cast<std::int32_t>(prefix.tokens.size());
    const std::int32_t needed = base::DivUp(length, scheduling.block_size);
    if (needed <= most) continue;
    return About(
        config, prefix.name,
        absl::StrCat("has ", length, " tokens, which are ", needed,
                     " blocks; no tenant can hold more than ", most,
                     " while they are computed: shorten it, or raise the reserve-blocks of "
                     "an isolated tenant or --kv-cache-memory"));
  }
  return absl::OkStatus();
}

}  // namespace pagoda::server
