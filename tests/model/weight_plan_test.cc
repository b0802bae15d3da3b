#include "model/weight_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using fixtures::GgufWriter;
using fixtures::TinyOptions;
using formats::GgufType;
using testing::HasSubstr;

struct Planned {
  std::vector<std::byte> bytes;
  std::unique_ptr<formats::GgufFile> file;
  std::unique_ptr<Checkpoint> checkpoint;
  absl::StatusOr<WeightPlan> plan;
};

Planned Plan(const TinyOptions& options,
             kernels::PackLayout layout = kernels::PackLayout::kColumnPanels) {
  Planned planned{.bytes = fixtures::TinyGguf(options),
                  .file = {},
                  .checkpoint = {},
                  .plan = absl::StatusOr<WeightPlan>()};
  auto file = formats::GgufFile::Parse(planned.bytes, "tiny.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  planned.file = *std::move(file);
  auto checkpoint = Checkpoint::Over(*planned.file);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  planned.checkpoint = *std::move(checkpoint);
  planned.plan = PlanWeights(*planned.checkpoint,
                             {.layout = layout, .activation = kernels::ActivationType::kInt8});
  return planned;
}

void ExpectRefused(const TinyOptions& options, const std::string& words) {
  const Planned planned = Plan(options);
  ASSERT_FALSE(planned.plan.ok()) << words;
  EXPECT_THAT(std::string(planned.plan.status().message()), HasSubstr(words));
}

constexpr std::int64_t kLayerValues = 64 * (128 + 64 + 64 + 128 + 3 * 96) + 2 * 64;

TEST(WeightPlan, PlacesEveryTensorOfTinyOnceAndCountsItsParameters) {
  const Planned planned = Plan({});
  ASSERT_TRUE(planned.plan.ok()) << planned.plan.status();
  EXPECT_EQ(planned.plan->layers.size(), 2u);
  EXPECT_EQ(planned.plan->num_parameters, 2 * kLayerValues + 64 + 576 * 64);
  EXPECT_EQ(planned.plan->weight_format, "Q4_1");
  EXPECT_TRUE(planned.plan->has_quantized);
  EXPECT_EQ(planned.plan->layers[1].qkv.parts[2]->name, "blk.1.attn_v.weight");
}

TEST(WeightPlan, ATypeThatIsNotBuiltIsRefusedWithTheFilesName) {
  constexpr auto kInt8 = static_cast<GgufType>(24);
  const auto more = [](GgufWriter& writer) {
    constexpr std::uint64_t kShape[] = {96, 64};
    writer.Tensor("blk.0.ffn_down.weight", kShape, kInt8, std::vector<std::byte>(96 * 64));
  };
  ExpectRefused({.more = more, .without_tensor = "blk.0.ffn_down.weight"},
                "tiny.gguf: tensor 'blk.0.ffn_down.weight' is of type I8, which is not built");
}

TEST(WeightPlan, NoTwoPackedWeightsShareAByte) {
  const Planned planned = Plan({.tied = false});
  ASSERT_TRUE(planned.plan.ok()) << planned.plan.status();
  std::int64_t end = 0;
  for (const PlannedLayer& layer : planned.plan->layers) {
    for (const PlannedWeight* const weight :
         {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down}) {
      EXPECT_GE(weight->byte_offset, end);
      EXPECT_EQ(weight->byte_offset % 64, 0);
      end = weight->byte_offset + weight->plan.bytes;
    }
  }
  EXPECT_GE(planned.plan->lm_head.byte_offset, end);
  EXPECT_EQ(planned.plan->packed_bytes,
            planned.plan->lm_head.byte_offset + planned.plan->lm_head.plan.bytes);
}

TEST(WeightPlanG6, AnAbsentHeadIsTheEmbeddingAndAPresentOneIsUsed) {
  const Planned tied = Plan({.tied = true});
  ASSERT_TRUE(tied.plan.ok()) << tied.plan.status();
  EXPECT_TRUE(tied.plan->is_tied);
  EXPECT_EQ(tied.plan->lm_head.parts[0]->name, "token_embd.weight");
  const Planned own = Plan({.tied = false});
  ASSERT_TRUE(own.plan.ok()) << own.plan.status();
  EXPECT_FALSE(own.plan->is_tied);
  EXPECT_EQ(own.plan->lm_head.parts[0]->name, "output.weight");
  EXPECT_EQ(own.plan->num_parameters, tied.plan->num_parameters + 576 * 64);
}

TEST(WeightPlanG6, ATiedHeadInRowsTakesNoFurtherBytes) {
  const Planned tied = Plan({.tied = true}, kernels::PackLayout::kRows);
  ASSERT_TRUE(tied.plan.ok()) << tied.plan.status();
  EXPECT_TRUE(tied.plan->lm_head.in_place());
  const Planned own = Plan({.tied = false}, kernels::PackLayout::kRows);
  EXPECT_EQ(own.plan->mapped_bytes - tied.plan->mapped_bytes, tied.plan->lm_head.plan.bytes);
}

TEST(WeightPlan, AMissingTensorIsRefusedByName) {
  for (const char* const name : {"blk.0.attn_norm.weight", "blk.1.ffn_down.weight",
                                 "blk.1.attn_k.weight", "output_norm.weight"}) {
    ExpectRefused({.without_tensor = name}, std::string("tensor '") + name + "' is missing");
  }
}

TEST(WeightPlanG7, AShapeThatDoesNotFitIsRefusedByNameWithBothShapes) {
  ExpectRefused({.reshaped_tensor = "blk.1.attn_k.weight"},
                "tensor 'blk.1.attn_k.weight' has shape [65, 64]; expected [64, 64]");
  // Without key_length the head size is 16, and the file's matrices are twice too wide.
  ExpectRefused({.states_head_size = false},
                "tensor 'blk.0.attn_q.weight' has shape [128, 64]; expected [64, 64]");
}

TEST(WeightPlanG7, ATensorThatNobodyUsesIsRefusedByName) {
  const auto with = [](const std::string& name) {
    return TinyOptions{.more = [=](GgufWriter& writer) {
      const std::array<float, 32> values{};
      const std::uint64_t shape[] = {32};
      writer.Tensor(name, shape, GgufType::kF32, std::as_bytes(std::span(values)));
    }};
  };
  ExpectRefused(with("blk.0.attn_q_norm.weight"), "tensor 'blk.0.attn_q_norm.weight' is not part");
  ExpectRefused(with("blk.0.attn_q.bias"), "tensor 'blk.0.attn_q.bias' is not part");
  ExpectRefused(with("blk.2.attn_norm.weight"), "tensor 'blk.2.attn_norm.weight' is not part");
}

}  // namespace
}  // namespace pagoda::model
