#include "kernels/check_shapes.h"

#include <cstddef>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace pagoda::kernels {
namespace {

// Each test breaks one thing of a call that is right.
class CheckShapesDeathTest : public testing::Test {
 protected:
  CheckShapesDeathTest() {
    kv_ = BlockMajorKvView(pool_.data(),
                           {.num_layers = 2,
                            .window_tokens = std::nullopt,
                            .num_kv_heads = 2,
                            .head_size = 8,
                            .type = base::KvType::kF32},
                           4, 6, KeyOrder::kTokenMajor);
    work_ = {.first_row = 1, .num_tokens = 2, .first_position = 7, .block_table = table_};
    attention_ = {.query = wide_,
                  .out = wide_,
                  .kv = &kv_,
                  .layer = 1,
                  .num_query_heads = 4,
                  .scale = 1.0f,
                  .work = {&work_, 1}};
    write_ = {.key = narrow_, .value = narrow_, .kv = &kv_, .layer = 1, .slots = slots_};
    row_.logits = data_;
    sample_ = {.rows = {&row_, 1}, .outcomes = {&outcome_, 1}};
  }

  // Six blocks of 4 tokens, 2 layers, keys and values, 2 heads of 8 floats.
  std::vector<std::byte> pool_ = std::vector<std::byte>(std::size_t{6} * 4 * 2 * 2 * 2 * 8 * 4);
  std::vector<float> data_ = std::vector<float>(96);
  MatrixView wide_ = {data_.data(), 3, 32, 32};
  MatrixView narrow_ = {data_.data(), 3, 16, 16};
  std::vector<std::uint32_t> table_ = {5, 1, 2};
  std::vector<std::int64_t> slots_ = {0, -1, 23};
  KvView kv_;
  AttentionWork work_;
  AttentionParams attention_;
  WriteKvParams write_;
  SampleRow row_;
  SampleOutcome outcome_;
  SampleParams sample_;
};

TEST_F(CheckShapesDeathTest, RightCallsPass) {
  CheckShapes(attention_);
  CheckShapes(write_);
  CheckShapes(sample_);
  CheckShapes(kv_, std::vector<std::uint32_t>{0, 5});
}

TEST_F(CheckShapesDeathTest, AttentionWithATableThatIsTooShortAborts) {
  work_.block_table = work_.block_table.first(2);
  EXPECT_DEATH(CheckShapes(attention_), "needed");
}

TEST_F(CheckShapesDeathTest, AttentionOverABlockOutsideThePoolAborts) {
  table_[0] = 6;
  EXPECT_DEATH(CheckShapes(attention_), "num_blocks");
}

TEST_F(CheckShapesDeathTest, AttentionRowsOutsideTheQueryAbort) {
  work_.first_row = 2;
  EXPECT_DEATH(CheckShapes(attention_), "query.rows");
}

TEST_F(CheckShapesDeathTest, QueryHeadsThatKvHeadsDoNotDivideAbort) {
  attention_.num_query_heads = 3;
  EXPECT_DEATH(CheckShapes(attention_), "num_kv_heads == 0");
}

TEST_F(CheckShapesDeathTest, ALayerThatIsNotThereAborts) {
  write_.layer = 2;
  EXPECT_DEATH(CheckShapes(write_), "num_layers");
}

TEST_F(CheckShapesDeathTest, ASlotOutsideThePoolAborts) {
  slots_[2] = 24;
  EXPECT_DEATH(CheckShapes(write_), "block_size");
}

TEST_F(CheckShapesDeathTest, ABlockCopiedOntoItselfAborts) {
  const std::vector<BlockCopy> copies = {{.source = 3, .target = 3, .num_slots = 1}};
  EXPECT_DEATH(CheckShapes(kv_, copies), "source != copy.target");
}

TEST_F(CheckShapesDeathTest, SamplingOutsideItsRangesAborts) {
  row_.top_p = 0.0f;
  EXPECT_DEATH(CheckShapes(sample_), "top_p");
  row_.top_p = 1.0f;
  row_.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_DEATH(CheckShapes(sample_), "temperature");
}

TEST_F(CheckShapesDeathTest, AnAdapterThatIsNotTheBaseModelAborts) {
  PackedWeight weight;
  weight.plan.num_outputs = 32;
  weight.plan.num_inputs = 32;
  const std::vector<base::AdapterId> adapters = {base::AdapterId{0}, base::AdapterId{1},
                                                 base::AdapterId{0}};
  EXPECT_DEATH(CheckShapes(MatmulParams{
                   .x = wide_, .weight = &weight, .out = wide_, .row_adapters = adapters}),
               "adapter");
}

}  // namespace
}  // namespace pagoda::kernels
