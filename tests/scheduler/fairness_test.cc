// Shares over many steps, counted with the real scheduler and a model that computes nothing. The
// figures are in docs/guarantees.md; run with --gtest_print_time=0 to see them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "scheduler/fair_counters.h"
#include "tests/scheduler/dice.h"
#include "tests/scheduler/token_mill.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr std::uint64_t kSeed = 20'261;

struct Load {
  std::int32_t least_prompt = 8, most_prompt = 60, least_reply = 4, most_reply = 60;
};

// Every tenant always has requests waiting, no two alike.
class Backlog {
 public:
  Backlog(TokenMill& mill, std::uint32_t num_tenants, Load load)
      : mill_(mill), num_tenants_(num_tenants), load_(load) {}

  void TopUp() {
    for (std::uint32_t t = 0; t < num_tenants_; ++t) {
      while (mill_.state().queues[t].size() < 4) {
        mill_.Add(t, next_token_, Between(load_.least_prompt, load_.most_prompt),
                  Between(load_.least_reply, load_.most_reply));
        next_token_ = (next_token_ + 101) % 900'000;
      }
    }
  }

 private:
  std::int32_t Between(std::int32_t least, std::int32_t most) {
    return least + dice_.Roll(most - least + 1);
  }

  TokenMill& mill_;
  const std::uint32_t num_tenants_;
  const Load load_;
  Dice dice_{kSeed};
  base::TokenId next_token_ = 1;
};

SchedulerConfig WeightedConfig(const std::vector<std::int32_t>& weights, std::int32_t pool_blocks,
                               std::int32_t slots, std::int32_t tokens) {
  SchedulerConfig config = SmallConfig(pool_blocks, 4, slots);
  config.max_num_batched_tokens = tokens;
  config.max_model_len = 128;
  for (const std::int32_t weight : weights) {
    TenantConfig tenant;
    tenant.name = "w" + std::to_string(weight);
    tenant.weight = weight;
    config.tenants.push_back(tenant);
  }
  return config;
}

// Delivered tokens of each tenant over those of all, against its part of the weights: the largest
// difference, in parts of the whole.
double WorstShareError(const SchedulerConfig& config, Load load, int num_steps) {
  TokenMill mill(config);
  const auto num_tenants = static_cast<std::uint32_t>(config.tenants.size());
  Backlog backlog(mill, num_tenants, load);
  std::vector<std::int64_t> before(num_tenants);
  const auto delivered = [&](std::uint32_t t) {
    const TenantStats stats = mill.scheduler().tenant_stats(base::TenantId(t));
    return stats.prompt_tokens + stats.generated_tokens;
  };
  for (int step = 0; step < num_steps + 200; ++step) {
    if (step == 200) {
      for (std::uint32_t t = 0; t < num_tenants; ++t) before[t] = delivered(t);
    }
    backlog.TopUp();
    EXPECT_TRUE(mill.Step());
  }
  double sum = 0, weights = 0, worst = 0;
  for (std::uint32_t t = 0; t < num_tenants; ++t) {
    sum += static_cast<double>(delivered(t) - before[t]);
    weights += config.tenants[t].weight;
  }
  for (std::uint32_t t = 0; t < num_tenants; ++t) {
    const double share = static_cast<double>(delivered(t) - before[t]) / sum;
    const double due = config.tenants[t].weight / weights;
    const TenantStats stats = mill.scheduler().tenant_stats(base::TenantId(t));
    std::printf(
        "  weight %d: %.2f %% of the tokens, due %.2f %%; eligible in %ld steps, lifted in "
        "%ld; preempted %ld\n",
        config.tenants[t].weight, 100 * share, 100 * due, stats.num_eligible_steps, stats.num_lifts,
        stats.num_preemptions);
    worst = std::max(worst, std::abs(share - due));
  }
  return worst;
}

TEST(Fairness, SharesFollowTheWeightsWhereSlotsAreScarce) {
  std::printf("slots scarce, 3:2:1, seed %lu\n", kSeed);
  EXPECT_LT(WorstShareError(WeightedConfig({3, 2, 1}, 1'200, 16, 200), {}, 6'000), 0.02);
  std::printf("slots scarce, 7:1\n");
  EXPECT_LT(WorstShareError(WeightedConfig({7, 1}, 1'200, 17, 200), {}, 6'000), 0.02);
}

TEST(Fairness, SharesFollowTheWeightsWhereTokensAreScarce) {
  const Load prompts{.least_prompt = 60, .most_prompt = 110, .least_reply = 1, .most_reply = 4};
  std::printf("tokens scarce, 3:2:1, seed %lu\n", kSeed);
  EXPECT_LT(WorstShareError(WeightedConfig({3, 2, 1}, 2'400, 24, 61), prompts, 6'000), 0.02);
}

// Tenant 1 asks for nothing for long, then floods too.
TEST(Fairness, NobodyBanksMoreThanTwoStepsOfCredit) {
  SchedulerConfig config = WeightedConfig({1, 1}, 1'200, 8, 40);
  TokenMill mill(config);
  Backlog flood(mill, 1, {});
  std::vector<Tenant>& tenants = mill.state().tenants;
  const std::int64_t two_steps =
      2 * std::max(config.max_model_len, 2 * config.max_num_batched_tokens) * kCounterScale;
  for (int step = 0; step < 2'000; ++step) {
    flood.TopUp();
    LiftCounters(mill.state());
    if (tenants[0].is_eligible) {
      ASSERT_LE(tenants[0].counter - tenants[1].counter, two_steps);
    }
    ASSERT_TRUE(mill.Step());
  }
  Backlog both(mill, 2, {});
  int times_both = 0;
  for (int step = 0; step < 200; ++step) {
    both.TopUp();
    LiftCounters(mill.state());
    if (tenants[0].is_eligible && tenants[1].is_eligible) {
      ++times_both;
      ASSERT_LE(std::abs(tenants[0].counter - tenants[1].counter), two_steps);
    }
    ASSERT_TRUE(mill.Step());
    EXPECT_GE(tenants[0].num_slots, 2);  // its floors stay its own meanwhile
  }
  EXPECT_GT(times_both, 100);
}

struct Patience {
  std::vector<std::int64_t> steps;  // from Add to the first token, ascending
  std::int64_t cached_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t p99() const { return steps[steps.size() * 99 / 100]; }
};

// Tenant 1 asks one thing after the other, all within its reserve, over a few documents; tenant 0,
// if it floods, keeps ten times the pool waiting.
Patience Ask(bool is_flooded, int num_requests) {
  SchedulerConfig config = WeightedConfig({3, 1}, 401, 16, 80);
  config.max_queued_requests = 400;
  config.tenants[0].max_queued_requests = 300;
  config.tenants[1].max_queued_requests = 20;
  config.tenants[1].reserve_blocks = 140;
  TokenMill mill(config);
  Dice dice(kSeed), flood_dice(kSeed + 1);
  Patience patience;
  base::TokenId fresh = 500'000;
  for (int i = 0; i < num_requests; ++i) {
    const base::TokenId document = 1'000u * static_cast<base::TokenId>(1 + dice.Roll(4));
    const base::RequestId id = mill.Add(1, document, 4 * (6 + dice.Roll(7)), 9);
    const std::int64_t added_at = mill.num_steps();
    for (bool has_ended = false; !has_ended;) {
      while (is_flooded && mill.state().queues[0].size() < 290) {
        mill.Add(0, fresh, 40 + flood_dice.Roll(60), 1 + flood_dice.Roll(28));
        fresh = 500'000 + (fresh + 137) % 400'000;
      }
      EXPECT_TRUE(mill.Step());
      if (std::ranges::find(mill.started(), id) != mill.started().end()) {
        patience.steps.push_back(mill.num_steps() - added_at);
      }
      for (const FinishEvent& event : mill.finished()) {
        if (event.request.id != id) continue;
        has_ended = true;
        patience.cached_tokens += event.receipt.cached_tokens;
        patience.preemptions += event.receipt.preemptions;
      }
    }
  }
  std::ranges::sort(patience.steps);
  return patience;
}

TEST(Fairness, AFloodTakesNoReservedBlockAndDelaysTheFirstTokenAtMostThreefold) {
  const Patience alone = Ask(/*is_flooded=*/false, 300);
  const Patience flooded = Ask(/*is_flooded=*/true, 300);
  std::printf(
      "steps to the first token, p50 and p99: alone %ld %ld, flooded %ld %ld; cached tokens "
      "%ld and %ld\n",
      alone.steps[150], alone.p99(), flooded.steps[150], flooded.p99(), alone.cached_tokens,
      flooded.cached_tokens);
  EXPECT_EQ(flooded.preemptions, 0);
  EXPECT_LE(flooded.p99(), 3 * alone.p99());
  EXPECT_GT(flooded.cached_tokens, 0);
  EXPECT_EQ(flooded.cached_tokens, alone.cached_tokens);
}

}  // namespace
}  // namespace pagoda::scheduler::testing
