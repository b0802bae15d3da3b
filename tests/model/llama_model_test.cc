#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.h"
#include "tests/fixtures/chain_model.h"
#include "tests/fixtures/fixture_tokenizer.h"
#include "tests/fixtures/gguf_writer.h"
#include "tests/model/forward_fixture.h"

namespace pagoda::model {
namespace {

using testing::HasSubstr;

std::string TinyPath(const fixtures::TinyOptions& tiny = {}) {
  const std::string path = fixtures::TemporaryPath("llama_model_test.gguf");
  EXPECT_TRUE(fixtures::WriteTinyGguf(path, tiny).ok());
  return path;
}

void ExpectRefused(const ModelOptions& options, absl::StatusCode code, const std::string& words,
                   const fixtures::TinyOptions& tiny = {}) {
  const auto model = Model::Load(TinyPath(tiny), options);
  EXPECT_EQ(model.status().code(), code) << words;
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(words));
}

TEST(ModelLoad, ReportsWhatWasDecided) {
  ModelOptions options;
  options.block_size = 4;
  const auto model = Model::Load(TinyPath(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelInfo& info = (*model)->info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.weight_format, "Q4_1");
  EXPECT_EQ(info.activation_dtype, "int8");
  EXPECT_EQ(info.kv_cache_dtype, "bf16");
  EXPECT_THAT(info.numerics_id, HasSubstr("int8"));
  EXPECT_EQ(info.vocabulary_size, 512u);
  EXPECT_EQ(info.context_length, 256);
  EXPECT_EQ(info.kv_geometry.BytesPerBlock(0), 4 * 2 * 2 * 2 * 32 * 2);
  EXPECT_GT(info.weight_bytes, 0);
}

TEST(ModelLoad, AutoActivationsAreF32ForFloatWeights) {
  const fixtures::TinyOptions tiny = {.weight_type = formats::GgufType::kBf16,
                                      .embedding_type = formats::GgufType::kBf16};
  const auto model = Model::Load(TinyPath(tiny), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().activation_dtype, "f32");
  ModelOptions int8;
  int8.activation_dtype = "int8";
  ExpectRefused(int8, absl::StatusCode::kInvalidArgument, "needs quantized weights; these are BF16",
                tiny);
}

TEST(ModelLoad, RefusesOptionsByName) {
  ModelOptions options;
  options.activation_dtype = "bf16";
  ExpectRefused(options, absl::StatusCode::kUnimplemented,
                "activation-dtype is 'bf16', which is not built");
  options = {};
  options.activation_dtype = "fp8";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "activation-dtype is 'fp8'");
  options = {};
  options.kv_cache_dtype = "fp16";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "kv-cache-dtype is 'fp16'");
  options = {};
  options.device = "cuda";
  ExpectRefused(options, absl::StatusCode::kUnimplemented,
                "device 'cuda': this build has no CUDA driver");
  options = {};
  options.device = "tpu";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "expected cpu, emulated-cuda or cuda");
  options = {};
  options.max_model_len = 257;
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "max-model-len is 257");
  options = {};
  options.block_size = 5;
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "block size 5");
  options = {};
  options.max_num_seqs = 0;
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "0 sequences");
}

TEST(ModelLoad, AMissingFileIsNotFound) {
  const auto model = Model::Load("/nowhere/model.gguf", {});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
}

// Greedy continuation of `token` by `steps` tokens.
std::vector<base::TokenId> Continue(Model& model, base::TokenId token, std::int32_t steps) {
  TinySequence sequence{.tokens = {token}, .blocks = {3, 1, 2}};
  std::vector<base::TokenId> said;
  for (std::int32_t i = 0; i < steps; ++i) {
    const std::vector<float> logits = RunStep(model, {{&sequence, i, 1}})[0];
    const auto best = std::max_element(logits.begin(), logits.end());
    said.push_back(static_cast<base::TokenId>(best - logits.begin()));
    sequence.tokens.push_back(said.back());
  }
  return said;
}

TEST(Chain, SaysItsScriptsInBothFormats) {
  const fixtures::ChainScript scripts[] = {
      {.start = ">", .pieces = {"KL", "M", "\xec\x84", "\xff"}, .end = {}},
      {.start = "#", .pieces = {"ab", "cd"}, .end = fixtures::ChainScript::End::kRepeat}};
  for (const auto type : {formats::GgufType::kF32, formats::GgufType::kQ8_0}) {
    const std::string path = fixtures::TemporaryPath("chain.gguf");
    const auto tokens = fixtures::WriteChainGguf(path, scripts, {.weight_type = type});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ModelOptions options;
    options.block_size = 4;
    const auto model = Model::Load(path, options);
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_TRUE((*model)->AllocateKv(8).ok());
    EXPECT_THAT(Continue(**model, tokens->at(">"), 5),
                testing::ElementsAre(tokens->at("KL"), tokens->at("M"), tokens->at("\xec\x84"),
                                     tokens->at("\xff"), fixtures::kImEnd));
    EXPECT_THAT(Continue(**model, tokens->at("#"), 3),
                testing::ElementsAre(tokens->at("ab"), tokens->at("cd"), tokens->at("ab")));
    EXPECT_EQ(tokens->at("M"), fixtures::kFirstByteToken + 'M');
  }
}

TEST(Chain, RefusesATokenWithTwoSuccessors) {
  const fixtures::ChainScript script = {.start = ">", .pieces = {"a", "b", "a", "c"}, .end = {}};
  EXPECT_FALSE(fixtures::WriteChainGguf(fixtures::TemporaryPath("x.gguf"), {&script, 1}).ok());
}

}  // namespace
}  // namespace pagoda::model
