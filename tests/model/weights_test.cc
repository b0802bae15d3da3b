#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "kernels/reference/reference_ops.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using fixtures::TinyOptions;

struct Loaded {
  std::vector<std::byte> bytes;
  std::unique_ptr<formats::GgufFile> file;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<kernels::Ops> ops;
  Config config;
  absl::StatusOr<Weights> weights;
};

Loaded Load(const TinyOptions& options) {
  Loaded loaded{.bytes = fixtures::TinyGguf(options),
                .file = {},
                .checkpoint = {},
                .ops = kernels::MakeReferenceOps(),
                .config = {},
                .weights = absl::StatusOr<Weights>()};
  loaded.file = *formats::GgufFile::Parse(loaded.bytes, "tiny.gguf");
  loaded.checkpoint = *Checkpoint::Over(*loaded.file);
  loaded.config = loaded.checkpoint->config();
  const auto plan =
      PlanWeights(*loaded.checkpoint, {.layout = kernels::PackLayout::kRows, .activation = {}});
  EXPECT_TRUE(plan.ok()) << plan.status();
  loaded.weights = LoadWeights(*plan, loaded.config, *loaded.ops, kernels::ActivationType::kF32);
  return loaded;
}

TEST(Weights, EveryWeightHoldsTheBytesOfItsTensors) {
  const Loaded loaded = Load({});
  ASSERT_TRUE(loaded.weights.ok()) << loaded.weights.status();
  const LayerWeights& layer = loaded.weights->layers[1];
  const formats::GgufTensor* const value = loaded.file->FindTensor("blk.1.attn_v.weight");
  EXPECT_EQ(std::memcmp(layer.qkv.Part(2), value->data.data(), value->data.size()), 0);
  const formats::GgufTensor* const up = loaded.file->FindTensor("blk.1.ffn_up.weight");
  EXPECT_EQ(std::memcmp(layer.gate_up.Part(1), up->data.data(), up->data.size()), 0);
  const formats::GgufTensor* const norm = loaded.file->FindTensor("blk.1.ffn_norm.weight");
  EXPECT_EQ(std::memcmp(layer.feed_forward_norm.data(), norm->data.data(), norm->data.size()), 0);
  EXPECT_EQ(loaded.weights->lm_head.data, loaded.weights->embedding.data);  // tied
}

TEST(Weights, ANormThatIsNotFiniteIsRefusedByName) {
  const Loaded loaded = Load({.norm_weight = std::numeric_limits<float>::infinity()});
  EXPECT_THAT(
      std::string(loaded.weights.status().message()),
      testing::HasSubstr("tensor 'blk.0.attn_norm.weight' holds a value that is not finite"));
}

TEST(ModelDigest, ChangesWithAnyWeightAndAnyNumberOfTheMathematics) {
  const Loaded loaded = Load({});
  const base::Digest256 digest = ModelDigest(*loaded.checkpoint, loaded.config);
  EXPECT_EQ(digest, ModelDigest(*loaded.checkpoint, loaded.config));
  Config other = loaded.config;
  other.rope_base = 20000.0;
  EXPECT_NE(digest, ModelDigest(*loaded.checkpoint, other));
  std::vector<std::byte> bytes = loaded.bytes;
  bytes.back() ^= std::byte{1};  // padding, or the last norm's last byte
  bytes[bytes.size() - 64] ^= std::byte{1};
  const auto file = formats::GgufFile::Parse(bytes, "tiny.gguf");
  EXPECT_NE(digest, ModelDigest(**Checkpoint::Over(**file), loaded.config));
}

}  // namespace
}  // namespace pagoda::model
