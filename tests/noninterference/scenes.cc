#include "tests/noninterference/scenes.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/check.h"
#include "tests/scheduler/dice.h"

namespace pagoda::scheduler::testing {
namespace {

using Tokens = std::vector<base::TokenId>;

Tokens RandomTokens(Dice& dice, int count) {
  Tokens tokens(static_cast<std::size_t>(count));
  for (base::TokenId& token : tokens) token = static_cast<base::TokenId>(dice.Roll(kVocabulary));
  return tokens;
}

std::vector<Tokens> MakeDocuments(Dice& dice, int length) {
  std::vector<Tokens> documents;
  for (int i = 1 + dice.Roll(3); i > 0; --i) documents.push_back(RandomTokens(dice, length));
  return documents;
}

// Grows what every tenant has a floor of until the config is let in.
void RaiseToFloors(SchedulerConfig& config) {
  const std::int32_t tokens = config.max_num_batched_tokens;
  for (int slots = 0; slots < 40; ++slots) {
    config.max_logit_rows_per_step = config.max_num_seqs;
    config.max_num_batched_tokens = tokens;
    for (int i = 0; i < 400; ++i) {
      if (CheckConfig(config).ok()) return;
      ++config.max_num_batched_tokens;
    }
    ++config.max_num_seqs;
    config.max_namespaces = config.max_num_seqs;
  }
  std::fprintf(stderr, "%s\n", std::string(CheckConfig(config).message()).c_str());
  PAGODA_CHECK_MSG(false, "no config fits the scene");
}

// Tenants: the flooder, B, perhaps a third one, and the keeper.
SchedulerConfig MakeConfig(Promise promise, Dice& dice) {
  const int block_size = dice.OneIn(2) ? 4 : 1 + dice.Roll(5);
  const int shared = 12 + dice.Roll(40);  // blocks for all but the keeper
  SchedulerConfig config = SmallConfig(shared + KeeperBlocks(block_size), block_size, 1);
  const int left = shared - 2;
  std::vector<TenantConfig>& tenants = config.tenants;
  tenants.resize(2);
  tenants[kObserved].reserve_blocks = 2 + dice.Roll(left / 2);
  tenants[kObserved].isolated =
      promise == Promise::kIsolated || (promise == Promise::kSameAnswers && dice.OneIn(2));
  if (promise == Promise::kSerialInReserve) {
    tenants[kObserved].reserve_blocks = left / 2 + dice.Roll(left / 4 + 1);
  }
  int rest = left - tenants[kObserved].reserve_blocks;
  tenants[kFlooder].reserve_blocks = dice.Roll(std::max(1, rest / 2));
  rest -= tenants[kFlooder].reserve_blocks;
  if (dice.OneIn(3)) tenants.push_back({.name = "c", .reserve_blocks = dice.Roll(rest / 2 + 1)});
  for (TenantConfig& tenant : tenants) {
    tenant.weight = 1 + dice.Roll(3);
    tenant.max_queued_requests = 100;
  }
  if (dice.OneIn(3)) tenants[kObserved].max_queued_requests = 2 + dice.Roll(5);
  // Two slots for the keeper, and a share of the tokens that is no less than the others'.
  tenants.push_back({.name = "keeper",
                     .weight = 3,
                     .reserve_blocks = KeeperBlocks(block_size),
                     .max_queued_requests = 10,
                     .isolated = true});
  int weights = 0;
  for (const TenantConfig& tenant : tenants) weights += tenant.weight;
  config.max_queued_requests = 400;
  config.max_num_seqs = std::max(weights, (kKeeperSlots * weights + 2) / 3) + dice.Roll(7);
  config.max_num_batched_tokens = weights + dice.Roll(40);
  config.max_namespaces = config.max_num_seqs + 2;
  // Ages count in wall time, so hits of runs that take a different number of steps would differ.
  const bool may_age = promise == Promise::kIsolated || promise == Promise::kSameAnswers;
  if (may_age && dice.OneIn(4)) config.cached_block_ttl_ms = 5 + dice.Roll(40);  // a step: 1 ms
  RaiseToFloors(config);
  return config;
}

void AddTrouble(Ask& ask, Dice& dice) {
  if (dice.OneIn(6)) ask.cancelled_at = ask.at + dice.Roll(20);
  if (dice.OneIn(6)) {
    ask.paused_from = ask.at + dice.Roll(10);
    ask.paused_until = ask.paused_from + 1 + dice.Roll(40);
  }
  ask.sketch.one_request_namespace = dice.OneIn(12);
  ask.sketch.fields.priority = dice.OneIn(5) ? -1 : 0;
  if (dice.OneIn(8)) ask.sketch.salt = "narrower";
  if (dice.OneIn(10)) ask.sketch.fields.prompt_logprobs = 0;
  if (dice.OneIn(8)) ask.sketch.fields.n = 2;
}

std::int32_t BlocksOf(const Ask& ask, std::int32_t block_size) {
  const auto tokens =
      static_cast<std::int32_t>(ask.sketch.prompt.size()) + *ask.sketch.fields.max_tokens - 1;
  return (tokens + block_size - 1) / block_size;
}

std::vector<Ask> MakeObserved(Promise promise, const SchedulerConfig& config, Dice& dice) {
  const std::int32_t block_size = config.block_size;
  const std::int32_t reserve = config.tenants[kObserved].reserve_blocks;
  const bool is_serial = promise == Promise::kSerial || promise == Promise::kSerialInReserve;
  const auto documents = MakeDocuments(dice, std::max(block_size, reserve * block_size * 2 / 3));
  const int length = static_cast<int>(documents[0].size());
  std::vector<Ask> asks;
  int now = 0;
  std::int32_t footprint = 0;
  for (int i = 6 + dice.Roll(10); i > 0; --i) {
    Ask ask;
    ask.sketch.tenant = kObserved;
    ask.serial = is_serial;
    const Tokens& document =
        documents[static_cast<std::size_t>(dice.Roll(static_cast<int>(documents.size())))];
    ask.sketch.prompt.assign(document.begin(), document.begin() + 1 + dice.Roll(length));
    const Tokens tail = RandomTokens(dice, dice.Roll(4));
    ask.sketch.prompt.insert(ask.sketch.prompt.end(), tail.begin(), tail.end());
    ask.sketch.fields.max_tokens =
        1 + dice.Roll(dice.OneIn(3) ? std::max(1, reserve * block_size / 2) : 8);
    const std::int32_t blocks = BlocksOf(ask, block_size);
    if (blocks > reserve && (is_serial || !dice.OneIn(8))) continue;
    if (promise == Promise::kSerialInReserve && footprint + blocks > reserve) continue;
    footprint += blocks;
    now += dice.Roll(6);
    ask.at = now;
    ask.stops_early = dice.OneIn(2);
    if (!is_serial) AddTrouble(ask, dice);
    asks.push_back(ask);
  }
  return asks;
}

std::vector<Ask> MakeFlood(const SchedulerConfig& config, Dice& dice) {
  const bool has_third = config.tenants.size() > 3;
  const int most = config.pool_blocks_per_group[0] * config.block_size;
  const int kind = dice.Roll(3);
  std::vector<Ask> asks;
  int now = 0;
  for (int i = 6 + dice.Roll(30); i > 0; --i) {
    Ask ask;
    ask.sketch.tenant = has_third && dice.OneIn(2) ? 2 : kFlooder;
    const int capacity =
        Scheduler::CapacityBlocks(config, base::TenantId(ask.sketch.tenant)) * config.block_size;
    ask.sketch.prompt =
        RandomTokens(dice, 1 + dice.Roll(std::min(capacity, most * (kind + 1) / 4)));
    ask.sketch.fields.max_tokens = 1 + dice.Roll(kind == 2 ? 40 : 14);
    now += dice.Roll(4);
    ask.at = now;
    if (dice.OneIn(5)) ask.cancelled_at = now + dice.Roll(30);
    if (dice.OneIn(8)) {
      ask.paused_from = now + dice.Roll(20);
      ask.paused_until = ask.paused_from + dice.Roll(50);
    }
    if (dice.OneIn(6)) ask.sketch.salt = std::to_string(i);
    if (dice.OneIn(12)) ask.spoiled_after = dice.Roll(6);
    asks.push_back(ask);
  }
  return asks;
}

}  // namespace

std::vector<Ask> Scene::all() const {
  std::vector<Ask> asks = of_others;
  asks.insert(asks.end(), of_b.begin(), of_b.end());
  return asks;
}

Scene MakeScene(Promise promise, std::uint64_t seed, int fence_delay) {
  Dice dice(seed * 4 + static_cast<std::uint64_t>(promise));
  Scene scene;
  do {
    scene.options.config = MakeConfig(promise, dice);
    scene.of_b = MakeObserved(promise, scene.options.config, dice);
  } while (scene.of_b.empty());
  scene.of_others = MakeFlood(scene.options.config, dice);
  scene.options.config.max_in_flight = fence_delay + 1;
  scene.options.fence_delay = fence_delay;
  scene.options.observed = kObserved;
  scene.options.keeper = static_cast<std::uint32_t>(scene.options.config.tenants.size() - 1);
  return scene;
}

}  // namespace pagoda::scheduler::testing
