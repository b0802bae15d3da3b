#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/json_document.h"
#include "model/model.h"
#include "text/model_text.h"
#include "text/tokenizer.h"

// models/tiny, as it is shipped: transformers' answers in fp32 over the same bf16 weights are the
// oracle (tests/oracle/make_tiny_goldens.py).

namespace pagoda::model {
namespace {

using formats::JsonDocument;
using formats::JsonValue;

constexpr char kFolder[] = PAGODA_SOURCE_DIR "/models/tiny";
constexpr char kGoldens[] = PAGODA_SOURCE_DIR "/tests/oracle/goldens/tiny.json";
constexpr std::int32_t kMaxTokens = 1024;
constexpr std::int32_t kBlockSize = 16;
constexpr double kMaxGap = 1e-3;  // between the two highest logits, where answers may part

struct Golden {
  std::string text;
  std::vector<base::TokenId> prompt;
  std::vector<base::TokenId> answer;
  std::vector<double> gaps;
};

std::vector<base::TokenId> IdsOf(const JsonValue& list) {
  std::vector<base::TokenId> ids;
  for (const JsonValue& id : list.Elements()) {
    ids.push_back(static_cast<base::TokenId>(id.AsUnsigned().value()));
  }
  return ids;
}

std::vector<Golden> ReadGoldens() {
  const auto document = JsonDocument::Open(kGoldens);
  PAGODA_CHECK_MSG(document.ok(), document.status().ToString());
  std::vector<Golden> goldens;
  for (const JsonValue& entry : (*document)->root().Find("prompts").value().Elements()) {
    Golden golden{.text = std::string(entry.Find("text").value().AsString().value()),
                  .prompt = IdsOf(entry.Find("prompt_ids").value()),
                  .answer = IdsOf(entry.Find("greedy_ids").value()),
                  .gaps = {}};
    for (const JsonValue& gap : entry.Find("gaps").value().Elements()) {
      golden.gaps.push_back(gap.AsNumber().value());
    }
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

// The model alone, one sequence at a time, whose prompt comes in one chunk.
class Greedy {
 public:
  Greedy() : blocks_(kMaxTokens / kBlockSize) {
    auto model = Model::Load(kFolder, {.activation_dtype = "f32",
                                       .kv_cache_dtype = "f32",
                                       .num_threads = 2,
                                       .block_size = kBlockSize,
                                       .max_num_batched_tokens = kMaxTokens,
                                       .max_num_seqs = 1,
                                       .max_model_len = kMaxTokens});
    PAGODA_CHECK_MSG(model.ok(), model.status().ToString());
    model_ = *std::move(model);
    PAGODA_CHECK(model_->AllocateKv(1 + kMaxTokens / kBlockSize).ok());
    std::iota(blocks_.begin(), blocks_.end(), 1u);
  }

  std::vector<base::TokenId> Answer(std::vector<base::TokenId> ids, std::size_t num_tokens) {
    std::vector<base::TokenId> answer;
    std::int32_t position = 0;
    while (answer.size() < num_tokens) {
      answer.push_back(Next(ids, position));
      position += static_cast<std::int32_t>(ids.size());
      ids = {answer.back()};
    }
    return answer;
  }

 private:
  base::TokenId Next(const std::vector<base::TokenId>& ids, std::int32_t position) {
    const SequenceInput sequence{.slot = base::SlotId(0),
                                 .first_row = 0,
                                 .num_tokens = static_cast<std::int32_t>(ids.size()),
                                 .first_position = position,
                                 .block_tables = {blocks_}};
    const std::vector<std::int32_t> rows = {sequence.num_tokens - 1};
    const absl::Status done =
        model_->Forward({.tokens = ids, .sequences = std::span(&sequence, 1), .logit_rows = rows});
    PAGODA_CHECK_MSG(done.ok(), done.ToString());
    const std::span<float> logits = model_->Logits(0).first(model_->info().vocabulary_size);
    return static_cast<base::TokenId>(std::ranges::max_element(logits) - logits.begin());
  }

  std::unique_ptr<Model> model_;
  std::vector<std::uint32_t> blocks_;
};

TEST(ShippedModel, ItsTokensAreThoseOfItsOwnTokenizer) {
  const auto text = text::LoadModelText(kFolder, {});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<Golden> goldens = ReadGoldens();
  ASSERT_EQ(goldens.size(), 20u);
  for (const Golden& golden : goldens) {
    const auto ids = text->tokenizer->Encode(golden.text, text::Tokenizer::Specials::kControl);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, golden.prompt) << golden.text;
  }
}

TEST(ShippedModel, ItsGreedyAnswersAreTransformersOwn) {
  Greedy greedy;
  int num_parted = 0;
  for (const Golden& golden : ReadGoldens()) {
    const std::vector<base::TokenId> answer = greedy.Answer(golden.prompt, golden.answer.size());
    const auto parted = std::ranges::mismatch(answer, golden.answer).in1 - answer.begin();
    if (parted == std::ssize(answer)) continue;
    ++num_parted;
    EXPECT_LT(golden.gaps[static_cast<std::size_t>(parted)], kMaxGap)
        << golden.text << "\nparts at token " << parted;
  }
  EXPECT_LE(num_parted, 1);
}

}  // namespace
}  // namespace pagoda::model
