#include "model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Checkpoint, GivesTheTensorsOfAGgufFileWithTheFastestDimensionLast) {
  const std::string path = fixtures::TemporaryPath("checkpoint_test.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path).ok());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->path(), path);
  EXPECT_EQ((*checkpoint)->naming(), TensorNaming::kGguf);
  EXPECT_EQ((*checkpoint)->config().num_layers, 2);
  const StoredTensor* const query = (*checkpoint)->Find("blk.1.attn_q.weight");
  ASSERT_NE(query, nullptr);
  EXPECT_THAT(query->shape, ElementsAre(128, 64));
  EXPECT_EQ(query->type_name, "Q4_1");
  EXPECT_EQ(query->data.size(), 128u * 64 / 32 * 20);
  EXPECT_EQ((*checkpoint)->Find("blk.2.attn_q.weight"), nullptr);
  EXPECT_EQ((*checkpoint)->tensors().front().name, "token_embd.weight");
}

TEST(Checkpoint, AMissingFileIsNotFound) {
  EXPECT_EQ(Checkpoint::Open("/nowhere/model.gguf").status().code(), absl::StatusCode::kNotFound);
}

TEST(Checkpoint, ATypeThatIsNotBuiltIsRefusedByTensorAndName) {
  const StoredTensor tensor{
      .name = "blk.0.attn_q.weight", .type_name = "IQ4_XS", .shape = {}, .data = {}};
  const auto type = ElementTypeOf(tensor);
  EXPECT_EQ(type.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(type.status().message()),
              HasSubstr("tensor 'blk.0.attn_q.weight' is of type IQ4_XS, which is not built"));
}

}  // namespace
}  // namespace pagoda::model
