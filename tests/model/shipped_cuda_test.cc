// models/tiny on the CUDA kernels under the emulator, beside the CPU backend: 20 prompts, 32 greedy
// tokens each. The backends have different arithmetic, so answers may part where the CPU's two
// highest logits are nearly the same, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/model/forward_fixture.h"
#include "text/model_text.h"

namespace pagoda::model {
namespace {

constexpr char kFolder[] = PAGODA_SOURCE_DIR "/models/tiny";
constexpr std::size_t kNumTokens = 32;
constexpr std::uint32_t kBlocksEach = 6;  // of 16 tokens
constexpr float kClose = 2e-2f;           // of the two highest logits

// The first, named in docs/correctness.md, keeps its two highest logits further apart than kClose
// all the way, and its answer is a story and not one word over and over.
constexpr const char* kPrompts[] = {"There was a girl named Mira who lived by the sea.",
                                    "kite kite kite kite kite",
                                    "Once upon a time there was a girl named Mira.",
                                    "Mira had a red kite. Tom had a blue boat.",
                                    "Tolven owned a blue drum. Mira has",
                                    "The wind was strong",
                                    "One morning the sun was warm and the sky was clear.",
                                    "There was also a boy named Otto.",
                                    "A bird sang in the tree.",
                                    "The road was long, but nobody was in a hurry.",
                                    "They never forgot that day.",
                                    "Mira went to the harbour and sat down to rest.",
                                    "Who has the red kite?",
                                    "Tell me a story about a silver bell.",
                                    "Hello!",
                                    "1, 2, 3, 5, 8, 13, 21",
                                    "def f(x): return x",
                                    "He wrote a letter to his",
                                    "In the town of",
                                    "The end"};

struct Answer {
  std::vector<base::TokenId> tokens;
  std::vector<float> gaps;  // between the two highest logits at each token
};

void Take(const std::vector<float>& logits, Answer& answer) {
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::partial_sort(order.begin(), order.begin() + 2, order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                    });
  answer.tokens.push_back(order[0]);
  answer.gaps.push_back(logits[order[0]] - logits[order[1]]);
}

// All prompts side by side: on neither backend does a row depend on its company.
std::vector<Answer> AnswersOf(const std::string& device) {
  const auto text = text::LoadModelText(kFolder, {});
  EXPECT_TRUE(text.ok()) << text.status();
  ModelOptions options;
  options.device = device;
  options.max_num_batched_tokens = 1024;
  options.max_num_seqs = std::ssize(kPrompts);
  auto model = Model::Load(kFolder, options);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->AllocateKv(1 + kBlocksEach * std::size(kPrompts)).ok());
  std::vector<TinySequence> sequences(std::size(kPrompts));
  for (std::uint32_t i = 0; i < sequences.size(); ++i) {
    sequences[i].tokens =
        text->tokenizer->Encode(kPrompts[i], text::Tokenizer::Specials::kControl).value();
    sequences[i].blocks.resize(kBlocksEach);
    std::iota(sequences[i].blocks.begin(), sequences[i].blocks.end(), 1 + i * kBlocksEach);
  }
  std::vector<Answer> answers(sequences.size());
  std::vector<std::int32_t> computed(sequences.size(), 0);
  for (std::size_t step = 0; step < kNumTokens; ++step) {
    std::vector<Share> shares;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto known = static_cast<std::int32_t>(sequences[i].tokens.size());
      shares.push_back({&sequences[i], computed[i], known - computed[i]});
      computed[i] = known;
    }
    const LogitRows logits = RunStep(**model, shares);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      Take(logits[i], answers[i]);
      sequences[i].tokens.push_back(answers[i].tokens.back());
    }
  }
  return answers;
}

TEST(ShippedModelOnCuda, GreedyIdsAreTheCpusOrPartWhereTheTopTwoAreClose) {
  const std::vector<Answer> found = AnswersOf("emulated-cuda");
  const std::vector<Answer> wanted = AnswersOf("cpu");
  int num_parted = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto parted =
        std::ranges::mismatch(found[i].tokens, wanted[i].tokens).in1 - found[i].tokens.begin();
    const float least = *std::ranges::min_element(wanted[i].gaps);
    RecordProperty("least_gap_" + std::to_string(i), std::to_string(least));
    if (parted == std::ssize(found[i].tokens)) continue;
    ++num_parted;
    EXPECT_LE(wanted[i].gaps[static_cast<std::size_t>(parted)], kClose)
        << kPrompts[i] << ": parts at token " << parted;
  }
  EXPECT_GT(*std::ranges::min_element(wanted[0].gaps), kClose);
  EXPECT_EQ(found[0].tokens, wanted[0].tokens);
  EXPECT_GE(std::set(wanted[0].tokens.begin(), wanted[0].tokens.end()).size(), 24u);
  RecordProperty("num_parted", num_parted);
  EXPECT_LE(num_parted, 5);
}

}  // namespace
}  // namespace pagoda::model
