// Log-probabilities of TINY beside those of transformers, which knows nothing of our code
// (tests/oracle/make_logprobs.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "engine/model_executor.h"
#include "tests/engine/engine_world.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::engine {
namespace {

constexpr double kMaxError = 1e-4;
constexpr std::size_t kNumTop = 5;

struct GoldenRow {
  base::TokenId token = 0;
  double logprob = 0;
  std::uint32_t rank = 0;
  base::TokenId top_tokens[kNumTop] = {};
  double top_logprobs[kNumTop] = {};
};

struct GoldenText {
  std::vector<base::TokenId> ids;
  std::size_t num_prompt_tokens = 0;
  std::vector<GoldenRow> rows;  // of every token but the first
};

std::vector<GoldenText> ReadGoldens() {
  std::ifstream in(PAGODA_SOURCE_DIR "/tests/oracle/goldens/logprobs_tiny.txt");
  std::vector<GoldenText> texts;
  std::string word;
  std::size_t count = 0, num_prompt_tokens = 0;
  while (in >> word >> count >> word >> num_prompt_tokens) {
    GoldenText& text = texts.emplace_back();
    text.num_prompt_tokens = num_prompt_tokens;
    text.ids.resize(count);
    for (base::TokenId& id : text.ids) in >> id;
    text.rows.resize(count - 1);
    for (GoldenRow& row : text.rows) {
      in >> row.token >> row.logprob >> row.rank;
      for (std::size_t i = 0; i < kNumTop; ++i) in >> row.top_tokens[i] >> row.top_logprobs[i];
    }
  }
  return texts;
}

std::unique_ptr<Executor> MakeTinyExecutor(const WorldConfig& world) {
  const std::string path = testing::TempDir() + "/model_logprobs_tiny.gguf";
  PAGODA_CHECK(fixtures::WriteTinyGguf(path, {.context_length = 1024}).ok());
  auto model = model::Model::Load(path, {.activation_dtype = "f32",
                                         .kv_cache_dtype = "f32",
                                         .num_threads = 1,
                                         .block_size = 4,
                                         .max_num_batched_tokens = world.budget_tokens,
                                         .max_num_seqs = world.max_num_seqs,
                                         .max_logit_rows = world.max_logit_rows,
                                         .max_model_len = world.max_model_len});
  PAGODA_CHECK_MSG(model.ok(), model.status().ToString());
  PAGODA_CHECK((*model)->AllocateKv(world.pool_blocks).ok());
  const ModelExecutorOptions options{.limits = {.num_kv_groups = 1,
                                                .block_size = 4,
                                                .max_num_seqs = world.max_num_seqs,
                                                .max_num_batched_tokens = world.budget_tokens,
                                                .max_logit_rows = world.max_logit_rows,
                                                .max_model_len = world.max_model_len},
                                     .eos_tokens = {kEos}};
  return std::make_unique<ModelExecutor>(*std::move(model), options);
}

void ExpectRow(const fakes::RecordingSink::Score& score, const GoldenRow& row) {
  EXPECT_EQ(score.of.token, row.token);
  EXPECT_NEAR(score.of.logprob, row.logprob, kMaxError);
  ASSERT_EQ(score.alternatives.size(), kNumTop);
  for (std::size_t i = 0; i < kNumTop; ++i) {
    EXPECT_NEAR(score.alternatives[i].logprob, row.top_logprobs[i], kMaxError);
    // Tokens may change places only where their values are as good as equal.
    if (score.alternatives[i].token == row.top_tokens[i]) continue;
    const bool has_twin =
        (i > 0 && row.top_logprobs[i - 1] - row.top_logprobs[i] < kMaxError) ||
        (i + 1 == kNumTop || row.top_logprobs[i] - row.top_logprobs[i + 1] < kMaxError);
    EXPECT_TRUE(has_twin) << "place " << i;
  }
  if (std::abs(row.logprob - row.top_logprobs[0]) < kMaxError) return;
  EXPECT_NEAR(score.rank, row.rank, 2);
}

TEST(ModelLogprobs, AreThoseOfTransformers) {
  const std::vector<GoldenText> texts = ReadGoldens();
  ASSERT_EQ(texts.size(), 5u);
  const WorldConfig config{.max_logit_rows = 24};
  EngineWorld world(config, MakeTinyExecutor(config));
  std::uint64_t id = 0;
  for (const GoldenText& text : texts) {
    const auto prompt_end = text.ids.begin() + static_cast<std::ptrdiff_t>(text.num_prompt_tokens);
    Ask ask{.id = ++id, .prompt = {text.ids.begin(), prompt_end}};
    ask.max_tokens = static_cast<std::int32_t>(text.ids.size() - text.num_prompt_tokens);
    ask.temperature = 0.0f;
    ask.ignore_eos = true;
    ask.logprobs = kNumTop;
    ask.prompt_logprobs = kNumTop;
    world.Submit(ask);
  }
  world.RunUntilIdle();
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const auto reply = world.reply(t + 1);
    auto scores = reply.prompt_scores;
    scores.insert(scores.end(), reply.scores.begin(), reply.scores.end());
    ASSERT_EQ(scores.size(), texts[t].rows.size());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      SCOPED_TRACE("text " + std::to_string(t) + ", token " + std::to_string(i + 1));
      ExpectRow(scores[i], texts[t].rows[i]);
    }
  }
}

}  // namespace
}  // namespace pagoda::engine
