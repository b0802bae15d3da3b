#include "model/load_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

#include "tests/fixtures/tiny_folder.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {
namespace {

using Head = fixtures::TinyFolderOptions::Head;
using testing::HasSubstr;

// What is said of the tensors of a model; empty where nothing is.
std::string Refusal(const Checkpoint& checkpoint) {
  const auto plan = PlanWeights(checkpoint, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return std::string(CheckContent(*plan, checkpoint.config()).message());
}

std::string RefusalOfFolder(Head head) {
  const std::string folder = fixtures::TemporaryPath("load-checks-folder");
  EXPECT_TRUE(fixtures::WriteTinyFolder(folder, {.says_tied = true, .head = head}).ok());
  return Refusal(**Checkpoint::Open(folder));
}

TEST(LoadChecks, G6_AHeadThatIsSaidToBeTheEmbeddingIsComparedWithIt) {
  EXPECT_EQ(RefusalOfFolder(Head::kAbsent), "");
  EXPECT_EQ(RefusalOfFolder(Head::kEqual), "");
  EXPECT_THAT(RefusalOfFolder(Head::kDifferent),
              HasSubstr("'lm_head.weight' differs from 'model.embed_tokens.weight'"));
}

TEST(LoadChecks, AVectorThatIsNotFiniteIsNamed) {
  const auto bytes = fixtures::TinyGguf({.norm_weight = std::numeric_limits<float>::infinity()});
  const auto file = formats::GgufFile::Parse(bytes, "tiny");
  EXPECT_THAT(Refusal(**Checkpoint::Over(**file)),
              HasSubstr("'blk.0.attn_norm.weight' holds a value that is not finite"));
}

TEST(LoadChecks, ATokenizerHasNoMoreTokensThanTheEmbeddingHasRows) {
  const auto bytes = fixtures::TinyGguf();
  const auto file = formats::GgufFile::Parse(bytes, "tiny");
  const auto checkpoint = *Checkpoint::Over(**file);
  EXPECT_TRUE(CheckVocabulary(fixtures::kTinyRows, checkpoint->config()).ok());
  EXPECT_EQ(CheckVocabulary(fixtures::kTinyRows + 1, checkpoint->config()).message(),
            "a tokenizer of 577 tokens for a model of 576 embedding rows");
}

}  // namespace
}  // namespace pagoda::model
