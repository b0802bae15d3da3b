#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/engine/bit_keeper.h"
#include "tests/fixtures/chain_model.h"
#include "tests/fixtures/tiny_model.h"

// The standing equalities on a real model, bit by bit: for every token that a request draws, the
// logits it is drawn from are the same whatever the batch, the cache, the chunks, the preemptions
// and the threads. Solo runs in a fresh world are the oracle.

namespace pagoda::engine {
namespace {

using scheduler::FinishReason;

constexpr std::uint64_t kSeed = 77;

enum class Files { kTiny, kChain, kShipped };  // the last: models/tiny

struct Numerics {
  std::string activation_dtype;
  std::string kv_cache_dtype;
  std::string device = "cpu";
  std::int32_t num_threads = 2;
  Files files = Files::kTiny;
};

constexpr char kShippedPath[] = PAGODA_SOURCE_DIR "/models/tiny";
constexpr base::TokenId kShippedVocabulary = 1024;

// `world` with as many tokens as the model has.
WorldConfig Sized(const Numerics& numerics, WorldConfig world) {
  if (numerics.files == Files::kShipped) world.vocabulary_size = kShippedVocabulary;
  return world;
}

std::string NameOf(const Numerics& numerics) {
  const std::string device = numerics.device == "cpu" ? "" : "cuda_";
  const std::string files = numerics.files == Files::kChain ? "chain_" : "";
  return device + files + numerics.activation_dtype + "_" + numerics.kv_cache_dtype;
}

std::string TinyPath() {
  static const std::string path = [] {
    std::string made = testing::TempDir() + "/model_equalities_tiny.gguf";
    PAGODA_CHECK(fixtures::WriteTinyGguf(made, {.context_length = 1024}).ok());
    return made;
  }();
  return path;
}

std::string ChainPath() {
  static const std::string path = [] {
    std::string made = testing::TempDir() + "/model_equalities_chain.gguf";
    PAGODA_CHECK(fixtures::WriteRingGguf(made).ok());
    return made;
  }();
  return path;
}

std::string PathOf(Files files) {
  if (files == Files::kShipped) return kShippedPath;
  return files == Files::kChain ? ChainPath() : TinyPath();
}

std::unique_ptr<BitKeeper> MakeExecutor(const Numerics& numerics, const WorldConfig& world,
                                        RowBits& bits) {
  auto model =
      model::Model::Load(PathOf(numerics.files), {.device = numerics.device,
                                                  .activation_dtype = numerics.activation_dtype,
                                                  .kv_cache_dtype = numerics.kv_cache_dtype,
                                                  .num_threads = numerics.num_threads,
                                                  .block_size = 4,
                                                  .max_num_batched_tokens = world.budget_tokens,
                                                  .max_num_seqs = world.max_num_seqs,
                                                  .max_logit_rows = world.max_logit_rows,
                                                  .max_model_len = world.max_model_len});
  PAGODA_CHECK_MSG(model.ok(), model.status().ToString());
  PAGODA_CHECK((*model)->AllocateKv(world.pool_blocks).ok());
  const ModelExecutorOptions options{
      .limits = {.num_kv_groups = 1,
                 .block_size = 4,
                 .max_num_seqs = world.max_num_seqs,
                 .max_num_batched_tokens = world.budget_tokens,
                 .max_logit_rows = SchedulerConfigOf(world).max_logit_rows_per_step,
                 .max_model_len = world.max_model_len},
      .eos_tokens = {kEos}};
  return std::make_unique<BitKeeper>(std::make_unique<DigestingModel>(*std::move(model)), options,
                                     bits);
}

// What the requests give one by one, each in a world of its own.
struct Oracle {
  Oracle(const Numerics& numerics, const std::vector<Ask>& asks, const WorldConfig& config = {}) {
    for (const Ask& ask : asks) {
      EngineWorld world(Sized(numerics, config), MakeExecutor(numerics, config, bits));
      world.Submit(ask);
      world.RunUntilIdle();
      for (std::uint32_t c = 0; c < ask.n; ++c) replies[{ask.seed, c}] = world.reply(ask.id, c);
    }
  }
  RowBits bits;
  std::map<ReplyKey, fakes::RecordingSink::Reply> replies;
};

using Score = fakes::RecordingSink::Score;

std::vector<std::uint32_t> BitsOf(const std::vector<Score>& scores) {
  std::vector<std::uint32_t> bits;
  for (const Score& score : scores) {
    bits.insert(bits.end(), {score.of.token, std::bit_cast<std::uint32_t>(score.of.logprob),
                             score.rank, static_cast<std::uint32_t>(score.alternatives.size())});
    for (const base::TokenLogprob& each : score.alternatives) {
      bits.insert(bits.end(), {each.token, std::bit_cast<std::uint32_t>(each.logprob)});
    }
  }
  return bits;
}

// Requests with every parameter that a request can have, in many mixtures.
std::vector<Ask> MakeFullAsks(std::size_t count, std::uint64_t seed) {
  std::vector<Ask> asks = MakeAsks(count, seed);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Ask& ask = asks[i];
    ask.logprobs = static_cast<std::int32_t>(i % 21);
    if (i % 3 != 1) ask.prompt_logprobs = static_cast<std::int32_t>(i % 4);
    if (i % 6 == 5) {
      ask.logprobs.reset();
      ask.logprob_token_ids = {5, 500, 5};
    }
    ask.top_k = static_cast<std::int32_t>(i % 5 * 40);
    ask.min_p = i % 2 == 0 ? 0.0f : 0.01f;
    ask.presence_penalty = i % 2 == 0 ? 0.5f : -0.5f;
    ask.min_tokens = std::min<std::int32_t>(4, ask.max_tokens);
    ask.stop_token_ids = {static_cast<base::TokenId>(7 * i), 3};
    ask.logit_bias = {{.token = static_cast<base::TokenId>(i), .bias = 2.0f},
                      {.token = 300, .bias = -100.0f}};
    ask.bad_words = {{static_cast<base::TokenId>(i + 1)}, {4, 9}, {ask.prompt.front(), 8, 8}};
    if (i % 4 != 2) continue;
    ask.allowed_token_ids.emplace();
    for (base::TokenId token = 0; token < kVocabulary; token += 3) {
      ask.allowed_token_ids->push_back(token);
    }
  }
  return asks;
}

void ExpectAsAlone(const Oracle& oracle, const EngineWorld& world, const RowBits& bits,
                   const std::vector<Ask>& asks) {
  for (const Ask& ask : asks) {
    for (std::uint32_t c = 0; c < ask.n; ++c) {
      const auto& alone = oracle.replies.at({ask.seed, c});
      const auto reply = world.reply(ask.id, c);
      EXPECT_EQ(reply.tokens, alone.tokens) << "request " << ask.id << ", " << c;
      EXPECT_EQ(reply.reason, alone.reason) << "request " << ask.id << ", " << c;
      EXPECT_EQ(BitsOf(reply.scores), BitsOf(alone.scores)) << "request " << ask.id << ", " << c;
      EXPECT_EQ(BitsOf(reply.prompt_scores), BitsOf(alone.prompt_scores)) << "request " << ask.id;
    }
  }
  EXPECT_EQ(bits, oracle.bits);
  EXPECT_TRUE(world.AllReturned());
}

// Made once for all tests of the same numerics and requests: it is most of their work.
const Oracle& OracleOf(const Numerics& numerics, const std::vector<Ask>& asks) {
  static std::map<std::pair<std::string, std::uint64_t>, std::unique_ptr<const Oracle>> made;
  auto& oracle = made[{NameOf(numerics), asks.front().seed}];
  if (oracle == nullptr) oracle = std::make_unique<const Oracle>(numerics, asks);
  return *oracle;
}

class Bitwise : public testing::TestWithParam<Numerics> {
 protected:
  Bitwise() : Bitwise(MakeAsks(20, kSeed)) {}
  explicit Bitwise(const std::vector<Ask>& asks)
      : asks_(asks), oracle_(OracleOf(GetParam(), asks_)) {
    std::cerr << "seed " << kSeed << "\n";
  }

  // Runs all requests at once in such a world.
  void ExpectTogetherAsAlone(const WorldConfig& config, bool must_preempt = false) {
    RowBits bits;
    EngineWorld world(Sized(GetParam(), config), MakeExecutor(GetParam(), config, bits));
    for (const Ask& ask : asks_) world.Submit(ask);
    world.RunUntilIdle();
    ExpectAsAlone(oracle_, world, bits, asks_);
    EXPECT_EQ(world.scheduler().stats().num_preemptions > 0, must_preempt);
  }

  const std::vector<Ask> asks_;
  const Oracle& oracle_;
};

// Not of CHAIN: there a row is its last token's.
class BitwiseByContext : public Bitwise {};

TEST_P(BitwiseByContext, TheOracleGivesDifferentRowsForDifferentContexts) {
  std::map<std::uint64_t, std::vector<base::TokenId>> contexts;
  EXPECT_GT(oracle_.bits.size(), 200u);
  for (const auto& [place, digest] : oracle_.bits) {
    const auto& [reply, position] = place;
    const std::vector<base::TokenId>& all = oracle_.replies.at(reply).all_tokens;
    const std::vector<base::TokenId> context(all.begin(), all.begin() + position);
    const auto [kept, is_new] = contexts.insert({digest, context});
    EXPECT_EQ(kept->second, context);
  }
}

TEST_P(Bitwise, ContextsOverSeveralAttentionChunksAreTheSameInAnyChunksOfThePrompt) {
  const WorldConfig whole{.pool_blocks = 801, .budget_tokens = 700, .max_model_len = 700};
  std::vector<Ask> asks = MakeAsks(3, kSeed + 1);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const std::size_t length = 255 + 170 * i;  // with its reply it crosses 256, 425, 595
    for (std::uint32_t p = 0; asks[i].prompt.size() < length; ++p) {
      asks[i].prompt.push_back(base::Philox4x32({p, 2, 0, 0}, kSeed)[0] % kEos);
    }
    asks[i].max_tokens = 4;
  }
  const Oracle oracle(GetParam(), asks, whole);
  for (const std::int32_t budget_tokens : {64, 301}) {
    WorldConfig config = whole;
    config.budget_tokens = budget_tokens;
    RowBits bits;
    EngineWorld world(Sized(GetParam(), config), MakeExecutor(GetParam(), config, bits));
    for (const Ask& ask : asks) world.Submit(ask);
    world.RunUntilIdle();
    ExpectAsAlone(oracle, world, bits, asks);
  }
}

TEST_P(Bitwise, BatchedIsAlone) { ExpectTogetherAsAlone({}); }

// H4: a greedy reply keeps its tokens, and its logits their bits, with any number of others beside
// it and its prompt in one chunk or in several.
TEST_P(Bitwise, H4AGreedyReplyDoesNotChangeWithItsCompanyOrItsChunks) {
  const Ask& asked = asks_.front();
  ASSERT_EQ(asked.temperature, 0.0f);
  ASSERT_GT(asked.prompt.size(), 12u);
  for (const std::size_t company : {1, 3, 7, 15}) {
    for (const bool in_chunks : {false, true}) {
      if (company < 15 && in_chunks) continue;
      const WorldConfig config{.max_num_seqs = in_chunks ? 8 : 16,
                               .budget_tokens = in_chunks ? 12 : 400};
      RowBits bits;
      EngineWorld world(Sized(GetParam(), config), MakeExecutor(GetParam(), config, bits));
      for (std::size_t i = 0; i <= company; ++i) world.Submit(asks_[i]);
      world.RunUntilIdle();
      EXPECT_EQ(world.reply(asked.id).tokens, oracle_.replies.at({asked.seed, 0}).tokens);
      for (const auto& [place, digest] : bits) EXPECT_EQ(digest, oracle_.bits.at(place));
    }
  }
}

TEST_P(Bitwise, PreemptedIsUndisturbed) {
  ExpectTogetherAsAlone({.pool_blocks = 28}, /*must_preempt=*/true);
}

TEST_P(Bitwise, PromptsInSmallChunksArePromptsInOne) {
  for (const std::int32_t budget_tokens : {12, 16, 23}) {
    ExpectTogetherAsAlone({.budget_tokens = budget_tokens});
  }
}

TEST_P(Bitwise, AHitIsACold) {
  RowBits bits;
  EngineWorld world(Sized(GetParam(), {}), MakeExecutor(GetParam(), {}, bits));
  std::vector<Ask> asks = asks_;
  for (int round = 0; round < 2; ++round) {
    const std::int64_t cached_before = world.scheduler().stats().cached_tokens;
    for (Ask& ask : asks) {
      ask.id += 100;
      world.Submit(ask);
    }
    world.RunUntilIdle();
    ExpectAsAlone(oracle_, world, bits, asks);
    EXPECT_GT(world.scheduler().stats().cached_tokens, cached_before);
  }
}

class BitwiseOnThreads : public Bitwise {};

TEST_P(BitwiseOnThreads, OneThreadIsMany) {
  RowBits bits;
  Numerics numerics = GetParam();
  numerics.num_threads = 1;
  EngineWorld world(Sized(numerics, {}), MakeExecutor(numerics, {}, bits));
  for (const Ask& ask : asks_) world.Submit(ask);
  world.RunUntilIdle();
  ExpectAsAlone(oracle_, world, bits, asks_);
}

TEST_P(Bitwise, NeighboursOfCancelledRequestsAreUndisturbed) {
  RowBits bits;
  const WorldConfig config{.pool_blocks = 40};
  EngineWorld world(Sized(GetParam(), config), MakeExecutor(GetParam(), config, bits));
  for (const Ask& ask : asks_) world.Submit(ask);
  for (std::uint64_t victim = 2; victim <= 20; victim += 3) {
    world.Turn();
    world.Cancel(victim);
  }
  world.RunUntilIdle();
  for (const Ask& ask : asks_) {
    const auto reply = world.reply(ask.id);
    const auto& alone = oracle_.replies.at({ask.seed, 0}).tokens;
    ASSERT_LE(reply.tokens.size(), alone.size());
    EXPECT_TRUE(std::equal(reply.tokens.begin(), reply.tokens.end(), alone.begin())) << ask.id;
    EXPECT_EQ(reply.tokens.size() == alone.size(), reply.reason != FinishReason::kCancelled);
  }
  EXPECT_TRUE(world.AllReturned());
}

// Three choices of each request: cold and hit, alone and batched, preempted or not, in small
// chunks. The first is what the request alone would be, to the bit; greedy ones are all the same
// and share their blocks, those that draw are not.
TEST_P(Bitwise, SeveralChoicesAreTheSameHoweverTheyAreServedAndTheFirstIsAnOnlyOne) {
  std::vector<Ask> asks(asks_.begin(), asks_.begin() + 9);
  for (Ask& ask : asks) ask.n = 3;
  const Oracle oracle(GetParam(), asks);
  for (const Ask& ask : asks) {
    const auto& first = oracle.replies.at({ask.seed, 0}).tokens;
    EXPECT_EQ(first, oracle_.replies.at({ask.seed, 0}).tokens) << "request " << ask.id;
    const bool is_greedy = ask.temperature == 0.0f;
    for (const std::uint32_t c : {1u, 2u}) {
      const auto& other = oracle.replies.at({ask.seed, c}).tokens;
      if (is_greedy || (first.size() > 4 && GetParam().files != Files::kChain)) {
        EXPECT_EQ(other == first, is_greedy) << ask.id;
      }
    }
  }
  for (const auto& [place, digest] : oracle.bits) {
    if (place.first.second == 0) {
      EXPECT_EQ(digest, oracle_.bits.at(place));
    }
  }
  const WorldConfig roomy, tight{.pool_blocks = 44}, small_steps{.budget_tokens = 12};
  for (const WorldConfig& config : {roomy, tight, small_steps}) {
    RowBits bits;
    EngineWorld world(Sized(GetParam(), config), MakeExecutor(GetParam(), config, bits));
    std::vector<Ask> round = asks;
    for (int i = 0; i < 2; ++i) {
      const std::int64_t cached_before = world.scheduler().stats().cached_tokens;
      for (Ask& ask : round) {
        ask.id += 100;
        world.Submit(ask);
      }
      world.RunUntilIdle();
      ExpectAsAlone(oracle, world, bits, round);
      if (i > 0) {
        EXPECT_GT(world.scheduler().stats().cached_tokens, cached_before);
      }
    }
    const scheduler::SchedulerStats stats = world.scheduler().stats();
    if (GetParam().files != Files::kChain) {  // whose choices are all alike and share their blocks
      EXPECT_EQ(stats.num_preemptions > 0, config.pool_blocks == tight.pool_blocks);
    }
    EXPECT_GT(stats.num_adoptions, 0);
  }
}

// The same with every parameter on.
class BitwiseWithAll : public Bitwise {
 protected:
  BitwiseWithAll() : Bitwise(MakeFullAsks(24, kSeed + 7)) {}
};

TEST_P(BitwiseWithAll, EveryTokenHasTheScoresThatWereAskedFor) {
  for (const Ask& ask : asks_) {
    const auto& reply = oracle_.replies.at({ask.seed, 0});
    ASSERT_EQ(reply.scores.size(), reply.tokens.size());
    const auto width = ask.logprobs.value_or(static_cast<std::int32_t>(3));
    for (std::size_t i = 0; i < reply.scores.size(); ++i) {
      EXPECT_EQ(reply.scores[i].of.token, reply.tokens[i]);
      EXPECT_EQ(std::ssize(reply.scores[i].alternatives), width);
    }
    const std::size_t scored = ask.prompt_logprobs.has_value() ? ask.prompt.size() - 1 : 0;
    ASSERT_EQ(reply.prompt_scores.size(), scored);
    for (std::size_t i = 0; i < scored; ++i) {
      EXPECT_EQ(reply.prompt_scores[i].of.token, ask.prompt[i + 1]);
      EXPECT_EQ(std::ssize(reply.prompt_scores[i].alternatives), *ask.prompt_logprobs);
    }
  }
}

TEST_P(BitwiseWithAll, BatchedIsAlone) { ExpectTogetherAsAlone({}); }

TEST_P(BitwiseWithAll, PreemptedIsUndisturbed) {
  ExpectTogetherAsAlone({.pool_blocks = 28}, /*must_preempt=*/true);
}

TEST_P(BitwiseWithAll, PromptsInSmallChunksAndFewRowsArePromptsInOne) {
  ExpectTogetherAsAlone({.budget_tokens = 16});
  ExpectTogetherAsAlone({.max_logit_rows = 8});
  ExpectTogetherAsAlone({.budget_tokens = 23, .max_logit_rows = 11});
}

// C9: with a warm cache the scores of a prompt are those of a cold run; such a request computes its
// prompt itself.
TEST_P(BitwiseWithAll, C9AHitIsACold) {
  RowBits bits;
  EngineWorld world(Sized(GetParam(), {}), MakeExecutor(GetParam(), {}, bits));
  std::vector<Ask> asks = asks_;
  for (int round = 0; round < 2; ++round) {
    for (Ask& ask : asks) {
      ask.id += 100;
      world.Submit(ask);
    }
    world.RunUntilIdle();
    ExpectAsAlone(oracle_, world, bits, asks);
  }
  std::int32_t cached = 0;
  for (const Ask& ask : asks) {
    const auto receipt = world.reply(ask.id).receipt;
    if (ask.prompt_logprobs.has_value() && ask.prompt.size() > 1) {
      EXPECT_EQ(receipt.cached_tokens, 0) << ask.id;
    }
    cached += receipt.cached_tokens;
  }
  EXPECT_GT(cached, 0);
}

std::string PrintName(const testing::TestParamInfo<Numerics>& info) { return NameOf(info.param); }

INSTANTIATE_TEST_SUITE_P(Tiny, BitwiseWithAll,
                         testing::Values(Numerics{"f32", "f32"}, Numerics{"int8", "bf16"}),
                         PrintName);
INSTANTIATE_TEST_SUITE_P(Tiny, Bitwise,
                         testing::Values(Numerics{"f32", "f32"}, Numerics{"f32", "bf16"},
                                         Numerics{"int8", "f32"}, Numerics{"int8", "bf16"}),
                         PrintName);
INSTANTIATE_TEST_SUITE_P(Tiny, BitwiseByContext,
                         testing::Values(Numerics{"f32", "f32"}, Numerics{"int8", "bf16"}),
                         PrintName);
INSTANTIATE_TEST_SUITE_P(Tiny, BitwiseOnThreads,
                         testing::Values(Numerics{"f32", "f32"}, Numerics{"int8", "bf16"}),
                         PrintName);

// The table as weights: the next token is sure, so draws are all alike.
const Numerics kChainF32{"f32", "f32", "cpu", 2, Files::kChain};
const Numerics kChainInt8{"int8", "bf16", "cpu", 2, Files::kChain};
INSTANTIATE_TEST_SUITE_P(Chain, BitwiseWithAll, testing::Values(kChainF32, kChainInt8), PrintName);
INSTANTIATE_TEST_SUITE_P(Chain, Bitwise, testing::Values(kChainF32, kChainInt8), PrintName);

const Numerics kShipped{"auto", "auto", "cpu", 2, Files::kShipped};
INSTANTIATE_TEST_SUITE_P(Shipped, BitwiseWithAll, testing::Values(kShipped), PrintName);
INSTANTIATE_TEST_SUITE_P(Shipped, BitwiseByContext, testing::Values(kShipped), PrintName);
INSTANTIATE_TEST_SUITE_P(Shipped, Bitwise, testing::Values(kShipped), PrintName);

const Numerics kEmulatedCuda{"bf16", "bf16", "emulated-cuda"};
INSTANTIATE_TEST_SUITE_P(Cuda, BitwiseWithAll, testing::Values(kEmulatedCuda), PrintName);
INSTANTIATE_TEST_SUITE_P(Cuda, BitwiseByContext, testing::Values(kEmulatedCuda), PrintName);
INSTANTIATE_TEST_SUITE_P(Cuda, Bitwise, testing::Values(kEmulatedCuda), PrintName);

}  // namespace
}  // namespace pagoda::engine
