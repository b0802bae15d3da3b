// Small random-weight models of every family, as transformers and the gguf package wrote them, held
// to the logits and the greedy ids that transformers gives in fp32 (tests/oracle/make_families.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/json_document.h"
#include "model/model.h"

namespace pagoda::model {
namespace {

const std::string kFolder = PAGODA_SOURCE_DIR "/tests/oracle/families/";
constexpr std::size_t kVocabulary = 256;
constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kNumBlocks = 24;
// The largest difference of any logit; they spread by about 1.5 and reach 7. Both sides work in
// fp32 and sum in orders of their own.
constexpr float kLogitBound = 3e-5f;
// Gate A's rule: greedy ids may part only where the two highest logits are this near.
constexpr double kPartingGap = 1e-3;

struct Golden {
  std::string name;
  std::vector<base::TokenId> ids;
  std::vector<base::TokenId> greedy;
  std::vector<double> gaps;
  std::vector<std::int32_t> positions;
  std::vector<std::vector<float>> logits;  // by position
};

std::vector<base::TokenId> Ids(const formats::JsonValue& list) {
  std::vector<base::TokenId> ids;
  for (const formats::JsonValue& id : list.Elements()) {
    ids.push_back(static_cast<base::TokenId>(*id.AsUnsigned()));
  }
  return ids;
}

Golden LoadGolden(const std::string& name) {
  const auto document = formats::JsonDocument::Open(kFolder + "goldens.json");
  EXPECT_TRUE(document.ok()) << document.status();
  Golden golden;
  golden.name = name;
  for (const auto& position : (*document)->root().Find("positions")->Elements()) {
    golden.positions.push_back(static_cast<std::int32_t>(*position.AsInteger()));
  }
  const auto models = (*document)->root().Find("models")->Elements();
  std::ifstream rows(kFolder + "logits.bin", std::ios::binary);
  for (const formats::JsonValue& model : models) {
    std::vector<std::vector<float>> logits(golden.positions.size(),
                                           std::vector<float>(kVocabulary));
    for (auto& row : logits) {
      rows.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(4 * row.size()));
    }
    EXPECT_TRUE(rows.good());
    if (model.Find("name")->AsString() != name) continue;
    golden.ids = Ids(*model.Find("ids"));
    golden.greedy = Ids(*model.Find("greedy"));
    for (const auto& gap : model.Find("gaps")->Elements()) golden.gaps.push_back(*gap.AsNumber());
    golden.logits = std::move(logits);
  }
  EXPECT_FALSE(golden.ids.empty()) << name;
  return golden;
}

std::unique_ptr<Model> LoadModel(const std::string& path, const std::string& ops) {
  ModelOptions options;
  options.activation_dtype = "f32";
  options.kv_cache_dtype = "f32";
  options.ops = ops;
  options.num_threads = 1;
  options.block_size = kBlockSize;
  options.max_num_seqs = 8;
  auto model = Model::Load(path, options);
  EXPECT_TRUE(model.ok()) << path << ": " << model.status();
  if (!model.ok()) return nullptr;
  EXPECT_TRUE((*model)->AllocateKv(kNumBlocks).ok());
  return *std::move(model);
}

// Runs ids[first ...] at their positions; logits of `rows` (counted from `first`) are then ready.
void RunText(Model& model, std::span<const base::TokenId> ids, std::int32_t first,
             std::span<const std::int32_t> rows) {
  std::vector<std::uint32_t> blocks(kNumBlocks - 1);
  std::iota(blocks.begin(), blocks.end(), 1u);
  std::reverse(blocks.begin(), blocks.end());
  const auto fresh = ids.subspan(static_cast<std::size_t>(first));
  const SequenceInput sequence{.slot = base::SlotId{0},
                               .first_row = 0,
                               .num_tokens = static_cast<std::int32_t>(fresh.size()),
                               .first_position = first,
                               .block_tables = {blocks}};
  ASSERT_TRUE(
      model.Forward({.tokens = fresh, .sequences = {&sequence, 1}, .logit_rows = rows}).ok());
}

void ExpectTheLogits(Model& model, const Golden& golden) {
  RunText(model, golden.ids, 0, golden.positions);
  float largest = 0.0f;
  for (std::size_t i = 0; i < golden.positions.size(); ++i) {
    const std::span<float> row = model.Logits(static_cast<std::int32_t>(i));
    ASSERT_EQ(row.size(), kVocabulary);
    for (std::size_t c = 0; c < row.size(); ++c) {
      largest = std::max(largest, std::abs(row[c] - golden.logits[i][c]));
    }
  }
  EXPECT_LE(largest, kLogitBound);
  testing::Test::RecordProperty(golden.name, absl::StrCat(largest));
}

// Continues the text whose KV the model already has.
void ExpectTheGreedyIds(Model& model, const Golden& golden) {
  std::vector<base::TokenId> text = golden.ids;
  const std::int32_t last_prompt_row = static_cast<std::int32_t>(text.size()) - 1;
  RunText(model, text, 0, {&last_prompt_row, 1});
  constexpr std::int32_t kOnlyRow = 0;
  for (std::size_t i = 0; i < golden.greedy.size(); ++i) {
    const std::span<float> row = model.Logits(0);
    const auto best =
        static_cast<base::TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
    if (best != golden.greedy[i]) {
      EXPECT_LT(golden.gaps[i], kPartingGap) << "parted at token " << i;
      return;
    }
    text.push_back(best);
    RunText(model, text, static_cast<std::int32_t>(text.size()) - 1, {&kOnlyRow, 1});
  }
}

class Families : public testing::TestWithParam<const char*> {};

TEST_P(Families, TheFolderAnswersAsTransformersDoes) {
  const Golden golden = LoadGolden(GetParam());
  const auto model = LoadModel(kFolder + golden.name, "auto");
  ASSERT_NE(model, nullptr);
  ExpectTheLogits(*model, golden);
  ExpectTheGreedyIds(*model, golden);
}

TEST_P(Families, TheGgufFileOfTheSameWeightsAnswersTheSame) {
  const Golden golden = LoadGolden(GetParam());
  const auto model = LoadModel(absl::StrCat(kFolder, golden.name, ".gguf"), "auto");
  ASSERT_NE(model, nullptr);
  ExpectTheLogits(*model, golden);
  ExpectTheGreedyIds(*model, golden);
}

// The rows of a batch are 320 here and 1 at the end: the bias and the pairs go through every shape.
TEST_P(Families, TheReferenceAndTheFastOpsAgreeBitForBit) {
  const Golden golden = LoadGolden(GetParam());
  const auto fast = LoadModel(kFolder + golden.name, "auto");
  const auto plain = LoadModel(kFolder + golden.name, "reference");
  ASSERT_TRUE(fast != nullptr && plain != nullptr);
  const std::span<const base::TokenId> ids = std::span(golden.ids).first(40);
  const std::int32_t last = 39;
  RunText(*fast, ids, 0, {&last, 1});
  RunText(*plain, ids, 0, {&last, 1});
  EXPECT_THAT(fast->Logits(0), testing::ElementsAreArray(plain->Logits(0)));
}

INSTANTIATE_TEST_SUITE_P(All, Families,
                         testing::Values("llama", "llama-tied", "llama-head-dim", "llama3-scaling",
                                         "linear-scaling", "mistral", "qwen2"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace pagoda::model
