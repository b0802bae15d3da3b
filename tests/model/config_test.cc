#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using fixtures::GgufWriter;
using fixtures::TinyGguf;
using testing::HasSubstr;

absl::StatusOr<Config> Read(const fixtures::TinyOptions& options) {
  const std::vector<std::byte> bytes = TinyGguf(options);
  const auto file = formats::GgufFile::Parse(bytes, "tiny.gguf");
  if (!file.ok()) return file.status();
  return ReadConfig(**file);
}

void ExpectRefused(const fixtures::TinyOptions& options, const std::string& words) {
  const auto config = Read(options);
  ASSERT_FALSE(config.ok()) << words;
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(words));
}

TEST(Config, ReadsEverySizeOfTiny) {
  const auto config = Read({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "tiny");
  EXPECT_EQ(config->num_layers, 2);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->num_heads, 4);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->rotary_size, 32);
  EXPECT_EQ(config->context_length, 256);
  EXPECT_EQ(config->num_vocabulary_rows, 576u);
  EXPECT_EQ(config->vocabulary_size, 512u);
  EXPECT_EQ(config->rms_epsilon, 1e-5f);
  EXPECT_EQ(config->rope_base, 10000.0);
  EXPECT_EQ(config->KvGroupFor(base::KvType::kBf16).BytesPerToken(), 2 * 2 * 2 * 32 * 2);
}

TEST(ConfigG7, HeadSizeIsWhatTheFileSaysAndHiddenOverHeadsOnlyWhenItSaysNothing) {
  EXPECT_EQ(Read({})->head_size, 32);
  EXPECT_EQ(Read({.states_head_size = false})->head_size, 16);
}

TEST(ConfigG8, LinearScalingIsConsumedAndOtherTypesAreRefusedByName) {
  const auto scaled = [](const std::string& type, float factor) {
    return fixtures::TinyOptions{.more = [=](GgufWriter& writer) {
      writer.String("llama.rope.scaling.type", type);
      writer.Float("llama.rope.scaling.factor", factor);
    }};
  };
  EXPECT_EQ(Read(scaled("linear", 4.0f))->rope_position_scale, 4.0);
  EXPECT_EQ(Read(scaled("none", 1.0f))->rope_position_scale, 1.0);
  ExpectRefused(scaled("yarn", 4.0f), "'llama.rope.scaling.type' is yarn, which is not built");
  ExpectRefused(scaled("longrope", 4.0f), "is longrope, which is not built");
  ExpectRefused(scaled("none", 4.0f), "'llama.rope.scaling.factor' is 4");
  ExpectRefused(scaled("linear", 0.0f), "expected a finite number above 0");
  ExpectRefused({.more = [](GgufWriter& w) { w.Float("llama.rope.scaling.factor", 8.0f); }},
                "names no scaling");
}

TEST(Config, AKeyThatMayChangeTheMathematicsIsRefusedByName) {
  ExpectRefused({.more = [](GgufWriter& w) { w.Float("llama.attention.max_alibi_bias", 8.0f); }},
                "'llama.attention.max_alibi_bias' is not known");
  ExpectRefused({.more = [](GgufWriter& w) { w.Unsigned("llama.attention.sliding_window", 64); }},
                "'llama.attention.sliding_window' is 64 where the context has 256 tokens");
  EXPECT_TRUE(Read({.more = [](GgufWriter& w) {
                w.Unsigned("llama.attention.sliding_window", 256);
              }}).ok());
  ExpectRefused({.more = [](GgufWriter& w) { w.Unsigned("llama.expert_count", 8); }},
                "'llama.expert_count' is 8, which is not built");
  ExpectRefused({.more = [](GgufWriter& w) { w.Bool("llama.attention.causal", false); }},
                "'llama.attention.causal' is false");
  EXPECT_TRUE(Read({.more = [](GgufWriter& w) { w.Unsigned("llama.expert_count", 0); }}).ok());
  EXPECT_TRUE(Read({.more = [](GgufWriter& w) { w.String("general.license", "x"); }}).ok());
}

TEST(Config, ImpossibleRotarySizesAreRefused) {
  for (const std::uint32_t size : {31u, 34u, 0u}) {
    ExpectRefused({.more = [=](GgufWriter& w) { w.Unsigned("llama.rope.dimension_count", size); }},
                  "'llama.rope.dimension_count' is");
  }
}

TEST(Config, AFileThatIsNotOneWholeLlamaModelIsRefused) {
  GgufWriter writer;
  writer.String("general.architecture", "mamba");
  const std::vector<std::byte> bytes = writer.Bytes();
  const auto file = formats::GgufFile::Parse(bytes, "mamba.gguf");
  ASSERT_TRUE(file.ok());
  const auto config = ReadConfig(**file);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("architecture 'mamba'"));
  ExpectRefused({.more = [](GgufWriter& w) { w.Unsigned("split.count", 2); }}, "split model");
  ExpectRefused({.more = [](GgufWriter& w) { w.String("general.type", "adapter"); }},
                "is of type 'adapter'");
  ExpectRefused({.without_tensor = "token_embd.weight"}, "'token_embd.weight' is missing");
}

}  // namespace
}  // namespace pagoda::model
