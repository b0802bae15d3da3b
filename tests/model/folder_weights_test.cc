// A folder's tensors on their way into a plan and into memory: what is missing, doubled, tied,
// misshapen or stray.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "kernels/reference/reference_ops.h"
#include "model/checkpoint.h"
#include "model/load_plan.h"
#include "model/weight_plan.h"
#include "model/weights.h"
#include "tests/fixtures/gguf_writer.h"
#include "tests/fixtures/tiny_folder.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using fixtures::SafetensorsWriter;
using fixtures::TinyFolderOptions;
using testing::ElementsAre;
using testing::HasSubstr;
using Head = TinyFolderOptions::Head;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override { directory_ = fixtures::TemporaryPath("folder"); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  absl::Status Open(const TinyFolderOptions& options) {
    EXPECT_TRUE(fixtures::WriteTinyFolder(directory_, options).ok());
    auto checkpoint = Checkpoint::Open(directory_);
    if (!checkpoint.ok()) return checkpoint.status();
    checkpoint_ = *std::move(checkpoint);
    auto plan = PlanWeights(*checkpoint_, {.layout = kernels::PackLayout::kRows, .activation = {}});
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    auto weights = LoadWeights(plan_, checkpoint_->config(), *ops_, kernels::ActivationType::kF32);
    if (!weights.ok()) return weights.status();
    weights_ = *std::move(weights);
    return absl::OkStatus();
  }
  std::string Refusal(const TinyFolderOptions& options) {
    return std::string(Open(options).message());
  }

  std::string directory_;
  const std::unique_ptr<kernels::Ops> ops_ = kernels::MakeReferenceOps();
  std::unique_ptr<Checkpoint> checkpoint_;
  WeightPlan plan_;
  Weights weights_;
};

TEST_F(FolderTest, EveryTensorFindsItsPlace) {
  ASSERT_TRUE(Open({.family = "qwen2"}).ok());
  EXPECT_EQ(checkpoint_->naming(), TensorNaming::kTransformers);
  EXPECT_EQ(checkpoint_->config().name, std::filesystem::path(directory_).filename().string());
  EXPECT_EQ(plan_.weight_format, "BF16");
  EXPECT_FALSE(plan_.has_quantized);
  constexpr std::int64_t kLayerValues = 64 * (128 + 64 + 64 + 128 + 3 * 96) + 2 * 64;
  constexpr std::int64_t kBiases = 128 + 64 + 64;
  EXPECT_EQ(plan_.num_parameters, 2 * (kLayerValues + kBiases) + 64 + 576 * 64);
  const LayerWeights& layer = weights_.layers[1];
  const StoredTensor& value = *checkpoint_->Find("model.layers.1.self_attn.v_proj.weight");
  EXPECT_THAT(value.shape, ElementsAre(64, 64));
  EXPECT_EQ(std::memcmp(layer.qkv.Part(2), value.data.data(), value.data.size()), 0);
  ASSERT_EQ(layer.qkv_bias.size(), 128u + 64 + 64);
  std::uint16_t first_of_value = 0;
  std::memcpy(&first_of_value,
              checkpoint_->Find("model.layers.1.self_attn.v_proj.bias")->data.data(), 2);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(layer.qkv_bias[192]), std::uint32_t{first_of_value} << 16);
}

TEST_F(FolderTest, EveryFloatTypeIsTakenAndNamed) {
  ASSERT_TRUE(Open({.weight_type = formats::GgufType::kF32}).ok());
  EXPECT_EQ(plan_.weight_format, "F32");
  ASSERT_TRUE(Open({.weight_type = formats::GgufType::kF16}).ok());
  EXPECT_EQ(plan_.weight_format, "F16");
}

TEST_F(FolderTest, ATypeThatIsNotBuiltIsRefusedByTensorAndType) {
  const auto with = [](const char* type) {
    return TinyFolderOptions{.without_tensor = "model.layers.0.mlp.down_proj.weight",
                             .more = [=](SafetensorsWriter& writer) {
                               const std::uint64_t shape[] = {64, 96};
                               writer.Tensor("model.layers.0.mlp.down_proj.weight", type, shape,
                                             std::vector<std::byte>(64 * 96));
                             }};
  };
  for (const char* const type : {"I8", "F8_E4M3"}) {
    EXPECT_THAT(Refusal(with(type)),
                HasSubstr(std::string("tensor 'model.layers.0.mlp.down_proj.weight' is of type ") +
                          type + ", which is not built"));
  }
}

TEST_F(FolderTest, AMissingTensorIsRefusedByName) {
  for (const char* const name : {"model.layers.0.input_layernorm.weight", "model.norm.weight",
                                 "model.layers.1.self_attn.k_proj.bias"}) {
    EXPECT_THAT(Refusal({.family = "qwen2", .without_tensor = name}),
                HasSubstr(std::string("tensor '") + name + "' is missing"));
  }
}

TEST_F(FolderTest, AShapeThatDoesNotFitIsRefusedWithBothShapes) {
  EXPECT_THAT(Refusal({.reshaped_tensor = "model.layers.1.self_attn.k_proj.weight"}),
              HasSubstr("'model.layers.1.self_attn.k_proj.weight' has shape [65, 64]; expected "
                        "[64, 64]"));
  EXPECT_THAT(Refusal({.entries = {{"head_dim", "16"}}}),
              HasSubstr("q_proj.weight' has shape [128, 64]; expected [64, 64]"));
}

TEST_F(FolderTest, ATensorThatNobodyUsesIsRefusedByName) {
  for (const char* const name :
       {"model.layers.0.self_attn.q_norm.weight", "model.layers.2.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.bias", "rope_freqs.weight"}) {
    EXPECT_THAT(Refusal({.more =
                             [=](SafetensorsWriter& writer) {
                               const std::uint64_t shape[] = {32};
                               writer.Tensor(name, "F32", shape, std::vector<std::byte>(128));
                             }}),
                HasSubstr(std::string("tensor '") + name + "' is not part of a model"));
  }
}

TEST_F(FolderTest, FrequenciesOfOlderFoldersMustBeThoseOfTheConfiguration) {
  const auto with = [](float factor) {
    return TinyFolderOptions{.more = [=](SafetensorsWriter& writer) {
      std::array<float, 16> table;
      for (std::size_t i = 0; i < table.size(); ++i) {
        table[i] = factor * std::pow(10000.0f, -static_cast<float>(i) / 16);
      }
      const std::uint64_t shape[] = {16};
      writer.Tensor("model.layers.1.self_attn.rotary_emb.inv_freq", "F32", shape,
                    std::as_bytes(std::span(table)));
    }};
  };
  EXPECT_TRUE(Open(with(1.0f)).ok());
  EXPECT_THAT(Refusal(with(0.5f)),
              HasSubstr("inv_freq' holds 0.5 at 0; the configuration gives 1"));
}

TEST_F(FolderTest, AnAdapterBesideTheModelIsRefused) {
  ASSERT_TRUE(fixtures::WriteTinyFolder(directory_).ok());
  ASSERT_TRUE(
      fixtures::WriteFile(directory_ + "/adapter_config.json", std::as_bytes(std::span("{}", 2)))
          .ok());
  EXPECT_THAT(Refusal({}), HasSubstr("adapter_config.json: belongs to an adapter"));
}

using FolderTestG6 = FolderTest;

TEST_F(FolderTestG6, AnAbsentHeadIsTiedIfTheFlagSaysSoAndElseRefused) {
  ASSERT_TRUE(Open({.says_tied = true, .head = Head::kAbsent}).ok());
  EXPECT_TRUE(plan_.is_tied);
  EXPECT_EQ(weights_.lm_head.data, weights_.embedding.data);
  EXPECT_THAT(Refusal({.says_tied = false, .head = Head::kAbsent}),
              HasSubstr("tensor 'lm_head.weight' is missing"));
  EXPECT_THAT(Refusal({.head = Head::kAbsent, .entries = {{"tie_word_embeddings", ""}}}),
              HasSubstr("tensor 'lm_head.weight' is missing"));
}

TEST_F(FolderTestG6, APresentHeadIsUsedOrProvedEqual) {
  ASSERT_TRUE(Open({.says_tied = false, .head = Head::kDifferent}).ok());
  EXPECT_FALSE(plan_.is_tied);
  EXPECT_NE(weights_.lm_head.data, weights_.embedding.data);
  const std::int64_t untied = plan_.num_parameters;
  ASSERT_TRUE(Open({.says_tied = true, .head = Head::kEqual}).ok());
  EXPECT_TRUE(plan_.is_tied);
  EXPECT_EQ(plan_.num_parameters, untied - 576 * 64);
  EXPECT_THAT(Refusal({.says_tied = true, .head = Head::kDifferent}),
              HasSubstr("'lm_head.weight' differs from 'model.embed_tokens.weight'"));
}

TEST_F(FolderTest, APlannerHasTheBytesOfTheWeightsFromHeadersAlone) {
  ASSERT_TRUE(Open({}).ok());
  const auto plan = PlanLoad(*checkpoint_, {.block_size = 16}, kernels::PackLayout::kColumnPanels);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // Two bytes a value; the embedding where it lies, the head once more in panels.
  EXPECT_EQ(plan->memory.weight_bytes,
            2 * (2 * 64 * (128 + 64 + 64 + 128 + 3 * 96) + 2 * 576 * 64));
  EXPECT_EQ(plan->memory.kv_bytes_per_token, 2 * 2 * 2 * 32 * 2);
  EXPECT_EQ(plan->activation_dtype, "f32");
}

TEST_F(FolderTest, TheDigestTellsPairsAndScalingApart) {
  ASSERT_TRUE(Open({}).ok());
  const base::Digest256 digest = ModelDigest(*checkpoint_, checkpoint_->config());
  Config other = checkpoint_->config();
  other.rotary_pairs = Config::RotaryPairs::kInterleaved;
  EXPECT_NE(digest, ModelDigest(*checkpoint_, other));
  other = checkpoint_->config();
  other.llama3_scaling = Config::Llama3Scaling{.factor = 8.0, .original_context = 64};
  EXPECT_NE(digest, ModelDigest(*checkpoint_, other));
}

}  // namespace
}  // namespace pagoda::model
