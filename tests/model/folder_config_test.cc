#include "model/folder_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fixtures/gguf_writer.h"

namespace pagoda::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Entries of a config.json as JSON text; an empty text takes one out.
using Entries = std::map<std::string, std::string>;

Entries Llama() {
  return {{"model_type", "\"llama\""},  {"architectures", R"(["LlamaForCausalLM"])"},
          {"hidden_size", "64"},        {"intermediate_size", "96"},
          {"num_hidden_layers", "2"},   {"num_attention_heads", "4"},
          {"num_key_value_heads", "2"}, {"max_position_embeddings", "256"},
          {"vocab_size", "512"},        {"rms_norm_eps", "1e-05"},
          {"hidden_act", "\"silu\""},   {"torch_dtype", "\"bfloat16\""},
          {"attention_bias", "false"},  {"rope_scaling", "null"},
          {"rope_theta", "100000"}};
}

Entries Mistral() {
  Entries entries = Llama();
  entries["model_type"] = "\"mistral\"";
  entries["architectures"] = R"(["MistralForCausalLM"])";
  entries["sliding_window"] = "null";
  return entries;
}

Entries Qwen2() {
  Entries entries = Llama();
  entries["model_type"] = "\"qwen2\"";
  entries["architectures"] = R"(["Qwen2ForCausalLM"])";
  entries["use_sliding_window"] = "false";
  entries["sliding_window"] = "64";
  entries["max_window_layers"] = "1";
  return entries;
}

absl::StatusOr<Config> Read(const Entries& base, const Entries& changes = {}) {
  Entries entries = base;
  for (const auto& [key, text] : changes) entries[key] = text;
  std::string text;
  for (const auto& [key, value] : entries) {
    if (value.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "{" : ", ", "\"", key, "\": ", value);
  }
  const auto document = formats::JsonDocument::Parse(text + "}", "dir/config.json");
  EXPECT_TRUE(document.ok()) << document.status();
  return ReadConfig(**document);
}

void ExpectRefused(const Entries& base, const Entries& changes, const std::string& words,
                   absl::StatusCode code = absl::StatusCode::kUnimplemented) {
  const auto config = Read(base, changes);
  ASSERT_FALSE(config.ok()) << words;
  EXPECT_EQ(config.status().code(), code) << config.status();
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("dir/config.json: entry '"));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(words));
}

TEST(FolderConfig, ReadsEverySizeOfALlama) {
  const auto config = Read(Llama());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->num_layers, 2);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->feed_forward_size, 96);
  EXPECT_EQ(config->num_heads, 4);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->rotary_size, 16);
  EXPECT_EQ(config->context_length, 256);
  EXPECT_EQ(config->num_vocabulary_rows, 512u);
  EXPECT_EQ(config->rms_epsilon, 1e-5f);
  EXPECT_EQ(config->rope_base, 100000.0);
  EXPECT_EQ(config->rope_position_scale, 1.0);
  EXPECT_EQ(config->rotary_pairs, Config::RotaryPairs::kHalves);
  EXPECT_FALSE(config->has_qkv_bias);
  EXPECT_EQ(config->head, Config::Head::kOwn);
}

TEST(FolderConfig, WhatIsAbsentHasTheValueThatTransformersGivesIt) {
  const auto config = Read(Llama(), {{"num_key_value_heads", ""}, {"rope_theta", ""}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_kv_heads, 4);
  EXPECT_EQ(config->rope_base, 10000.0);
  ExpectRefused(Mistral(), {{"num_key_value_heads", ""}}, "'num_key_value_heads' is missing",
                absl::StatusCode::kInvalidArgument);
  for (const char* const key : {"hidden_size", "vocab_size", "rms_norm_eps", "model_type",
                                "max_position_embeddings", "num_hidden_layers"}) {
    ExpectRefused(Llama(), {{key, ""}}, absl::StrCat("'", key, "' is missing"),
                  absl::StatusCode::kInvalidArgument);
  }
}

TEST(FolderConfig, QkvBiasBelongsToQwen2) {
  const auto config = Read(Qwen2());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "qwen2");
  EXPECT_TRUE(config->has_qkv_bias);
  ExpectRefused(Llama(), {{"attention_bias", "true"}}, "'attention_bias' is true");
}

TEST(FolderConfigG6, TheHeadIsTiedWhenTheFlagSaysSoAndOnlyThen) {
  EXPECT_EQ(Read(Llama(), {{"tie_word_embeddings", "true"}})->head, Config::Head::kEmbedding);
  EXPECT_EQ(Read(Llama(), {{"tie_word_embeddings", "false"}})->head, Config::Head::kOwn);
  EXPECT_EQ(Read(Llama())->head, Config::Head::kOwn);
  ExpectRefused(Llama(), {{"tie_word_embeddings", "1"}}, "is a number; expected true or false",
                absl::StatusCode::kInvalidArgument);
}

TEST(FolderConfigG7, HeadSizeIsWhatTheFileSaysAndHiddenOverHeadsOnlyWhenItSaysNothing) {
  EXPECT_EQ(Read(Llama(), {{"head_dim", "32"}})->head_size, 32);
  EXPECT_EQ(Read(Llama(), {{"head_dim", "32"}})->rotary_size, 32);
  EXPECT_EQ(Read(Llama(), {{"head_dim", "null"}})->head_size, 16);
  EXPECT_EQ(Read(Llama(), {{"hidden_size", "66"}, {"head_dim", "16"}})->head_size, 16);
  ExpectRefused(Llama(), {{"hidden_size", "66"}}, "4 heads do not divide hidden_size 66",
                absl::StatusCode::kInvalidArgument);
  ExpectRefused(Llama(), {{"head_dim", "15"}}, "heads of 15; expected an even number",
                absl::StatusCode::kInvalidArgument);
  ExpectRefused(Llama(), {{"num_key_value_heads", "3"}}, "is 3, which does not divide the 4 heads",
                absl::StatusCode::kInvalidArgument);
}

TEST(FolderConfigG8, EveryRopeTypeIsConsumedOrRefusedInBothSpellings) {
  for (const char* const word : {"type", "rope_type"}) {
    const auto scaled = [&](const std::string& rest) {
      return Entries{{"rope_scaling", absl::StrCat("{\"", word, "\": ", rest, "}")}};
    };
    EXPECT_EQ(Read(Llama(), scaled(R"("linear", "factor": 4.0)"))->rope_position_scale, 4.0);
    const auto llama3 = Read(
        Llama(), scaled(R"("llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 64)"));
    ASSERT_TRUE(llama3.ok()) << llama3.status();
    ASSERT_TRUE(llama3->llama3_scaling.has_value());
    EXPECT_EQ(llama3->llama3_scaling->factor, 8.0);
    EXPECT_EQ(llama3->llama3_scaling->low_frequency_factor, 1.0);
    EXPECT_EQ(llama3->llama3_scaling->high_frequency_factor, 4.0);
    EXPECT_EQ(llama3->llama3_scaling->original_context, 64);
    for (const char* const type : {"yarn", "dynamic", "longrope", "mrope"}) {
      ExpectRefused(Llama(), scaled(absl::StrCat("\"", type, "\", \"factor\": 2.0")),
                    absl::StrCat("'rope_type' is '", type, "'"));
    }
    ExpectRefused(Llama(), scaled(R"("linear")"), "'factor' is missing",
                  absl::StatusCode::kInvalidArgument);
    ExpectRefused(Llama(), scaled(R"("linear", "factor": 0)"), "'factor' is 0; expected a number",
                  absl::StatusCode::kInvalidArgument);
    ExpectRefused(Llama(), scaled(R"("linear", "factor": 2, "beta_fast": 32)"),
                  "'beta_fast' is not known");
    ExpectRefused(Llama(), scaled(R"("llama3", "factor": 8)"), "'low_freq_factor' is missing",
                  absl::StatusCode::kInvalidArgument);
  }
  ExpectRefused(Llama(), {{"rope_scaling", R"({"type": "linear", "rope_type": "llama3"})"}},
                "is 'llama3' beside type 'linear'", absl::StatusCode::kInvalidArgument);
  ExpectRefused(Llama(), {{"rope_scaling", "4"}}, "'rope_scaling' is a number",
                absl::StatusCode::kInvalidArgument);
}

TEST(FolderConfigG8, RopeParametersOfNewerFilesAreTheSameThing) {
  const auto config =
      Read(Llama(),
           {{"rope_theta", ""},
            {"rope_scaling", ""},
            {"rope_parameters", R"({"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0})"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_base, 500000.0);
  EXPECT_EQ(config->rope_position_scale, 2.0);
  EXPECT_EQ(Read(Llama(), {{"rope_parameters", R"({"rope_type": "default"})"}})->rope_base, 1e5);
  ExpectRefused(Llama(), {{"rope_parameters", R"({"rope_theta": 5e5})"}},
                "'rope_theta' is 500000 beside rope_theta 100000",
                absl::StatusCode::kInvalidArgument);
  ExpectRefused(Llama(),
                {{"rope_parameters", R"({"rope_type": "default", "partial_rotary_factor": 0.5})"}},
                "'partial_rotary_factor' is 0.5");
  ExpectRefused(Llama(), {{"rope_parameters", "{}"}, {"rope_scaling", "{}"}},
                "stands beside rope_scaling", absl::StatusCode::kInvalidArgument);
}

TEST(FolderConfig, AWindowSmallerThanTheContextIsRefusedAndOneThatNeverActsIsNot) {
  EXPECT_TRUE(Read(Mistral()).ok());
  EXPECT_TRUE(Read(Mistral(), {{"sliding_window", "256"}}).ok());
  ExpectRefused(Mistral(), {{"sliding_window", "255"}},
                "'sliding_window' is 255 where max_position_embeddings is 256");
  // transformers takes 4096 where the entry is absent.
  EXPECT_TRUE(Read(Mistral(), {{"sliding_window", ""}}).ok());
  ExpectRefused(Mistral(), {{"sliding_window", ""}, {"max_position_embeddings", "8192"}},
                "'sliding_window' is 4096");
  EXPECT_TRUE(Read(Mistral(), {{"max_position_embeddings", "8192"}}).ok());
  ExpectRefused(Llama(), {{"sliding_window", "64"}}, "'sliding_window' is not known");
  ExpectRefused(Qwen2(), {{"use_sliding_window", "true"}}, "'use_sliding_window' is true");
  EXPECT_TRUE(Read(Qwen2(), {{"layer_types", R"(["full_attention", "full_attention"])"}}).ok());
  ExpectRefused(Qwen2(), {{"layer_types", R"(["full_attention", "sliding_attention"])"}},
                "'layer_types' is 'sliding_attention' in a layer");
}

TEST(FolderConfig, WhatWouldChangeTheMathematicsIsRefusedByName) {
  const std::pair<Entries, std::string> cases[] = {
      {{{"model_type", "\"gemma2\""}}, "'model_type' is 'gemma2', which is not built"},
      {{{"architectures", R"(["LlamaForSequenceClassification"])"}},
       "'architectures' is 'LlamaForSequenceClassification'"},
      {{{"hidden_act", "\"gelu\""}}, "'hidden_act' is 'gelu', which is not built"},
      {{{"mlp_bias", "true"}}, "'mlp_bias' is true"},
      {{{"rope_interleaved", "true"}}, "'rope_interleaved' is true"},
      {{{"partial_rotary_factor", "0.5"}}, "'partial_rotary_factor' is 0.5"},
      {{{"quantization_config", R"({"quant_method": "gptq", "bits": 4})"}},
       "'quantization_config' is 'gptq', which is not built"},
      {{{"quantization_config", "{}"}}, "'quantization_config' is an object"},
      {{{"attention_multiplier", "0.01"}}, "'attention_multiplier' is not known"},
      {{{"logits_scaling", "8.0"}}, "'logits_scaling' is not known"},
      {{{"residual_multiplier", "0.2"}}, "'residual_multiplier' is not known"},
      {{{"final_logit_softcapping", "30.0"}}, "'final_logit_softcapping' is not known"},
      {{{"num_local_experts", "8"}}, "'num_local_experts' is not known"},
      {{{"auto_map", R"({"AutoModel": "x.y"})"}}, "'auto_map' is not known"},
      {{{"is_encoder_decoder", "true"}}, "'is_encoder_decoder' is true"},
  };
  for (const auto& [changes, words] : cases) ExpectRefused(Llama(), changes, words);
  EXPECT_TRUE(Read(Llama(), {{"logits_scaling", "null"}}).ok());
}

TEST(FolderConfig, SizesOutOfRangeAndOfTheWrongKindAreRefused) {
  for (const auto& [text, found] : std::map<std::string, std::string>{{"0", "is 0"},
                                                                      {"-1", "is a number"},
                                                                      {"2.5", "is a number"},
                                                                      {"\"2\"", "is a string"},
                                                                      {"1025", "is 1025"}}) {
    ExpectRefused(
        Llama(), {{"num_hidden_layers", text}},
        absl::StrCat("'num_hidden_layers' ", found, "; expected a whole number from 1 to 1024"),
        absl::StatusCode::kInvalidArgument);
  }
  const auto document = formats::JsonDocument::Parse("[]", "list.json");
  EXPECT_THAT(std::string(ReadConfig(**document).status().message()),
              HasSubstr("list.json: is an array; expected an object"));
}

class EosTokens : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fixtures::TemporaryPath("eos");
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(fixtures::WriteFile(directory_ + "/" + name, std::as_bytes(std::span(text))).ok());
  }

  std::string directory_;
};

TEST_F(EosTokens, AreThoseOfBothFilesWhetherOneOrAList) {
  Write("config.json", R"({"eos_token_id": 7})");
  EXPECT_THAT(*ReadEosTokens(directory_), ElementsAre(7u));
  Write("generation_config.json", R"({"eos_token_id": [9, 7, 8], "temperature": 0.6})");
  EXPECT_THAT(*ReadEosTokens(directory_), ElementsAre(7u, 8u, 9u));
  Write("config.json", R"({"eos_token_id": null})");
  Write("generation_config.json", "{}");
  EXPECT_THAT(*ReadEosTokens(directory_), IsEmpty());
}

TEST_F(EosTokens, AreRefusedWhenTheyAreNoTokens) {
  Write("config.json", R"({"eos_token_id": [1, "two"]})");
  EXPECT_THAT(std::string(ReadEosTokens(directory_).status().message()),
              HasSubstr("config.json: entry 'eos_token_id' holds a string"));
  Write("config.json", R"({"eos_token_id": -1})");
  EXPECT_FALSE(ReadEosTokens(directory_).ok());
  EXPECT_EQ(ReadEosTokens("/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pagoda::model
