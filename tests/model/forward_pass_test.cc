#include "model/forward_pass.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/model/forward_fixture.h"
#include "tests/model/naive_llama.h"

namespace pagoda::model {
namespace {

std::vector<TinyRun::Kind> AllKinds() {
  std::vector<TinyRun::Kind> kinds;
  for (const char* const activation : {"f32", "int8"}) {
    for (const char* const kv : {"f32", "bf16"}) {
      kinds.push_back({.activation = activation, .kv = kv});
    }
  }
  return kinds;
}

std::string NameOf(const TinyRun::Kind& kind) {
  return kind.activation + " activations, " + kind.kv + " KV, " + kind.ops;
}

void ExpectSameBits(const std::vector<float>& expected, const std::vector<float>& actual,
                    const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i])) << what << ", logit " << i;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(expected[i]), std::bit_cast<std::uint32_t>(actual[i]))
        << what << ", logit " << i;
  }
}

TEST(ForwardPass, EqualsANaiveDoublePrecisionLlamaWithinRounding) {
  using enum formats::GgufType;
  for (const formats::GgufType type :
       {kF32, kF16, kBf16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K}) {
    const bool is_k = type == kQ4_K || type == kQ5_K || type == kQ6_K;
    const fixtures::TinyOptions tiny = {
        .weight_type = type, .embedding_type = type, .wide = is_k, .tied = false};
    TinyRun run({.tiny = tiny});
    const TinySequence sequence = MakeSequence(0, 40);
    const std::vector<float> logits = Alone(*run.model, sequence);
    const std::vector<double> expected =
        NaiveLlamaLogits(fixtures::TinyGguf(tiny), sequence.tokens);
    ASSERT_EQ(logits.size(), expected.size());
    double largest = 0.0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(logits[i], expected[i], 2e-4 * largest) << static_cast<int>(type) << " " << i;
    }
  }
}

TEST(ForwardPass, ReferenceLoopsAndFastKernelsGiveTheSameBits) {
  for (TinyRun::Kind kind : AllKinds()) {
    const TinySequence sequence = MakeSequence(1, 150);
    TinyRun fast(kind);
    kind.ops = "reference";
    TinyRun plain(kind);
    ExpectSameBits(Alone(*plain.model, sequence), Alone(*fast.model, sequence), NameOf(kind));
  }
}

// As the mixtures of llama.cpp: most matrices in one type, the embedding and the head in a finer
// one.
TEST(ForwardPass, FilesOfMixedKTypesGiveTheReferencesBitsWhateverTheChunks) {
  using enum formats::GgufType;
  for (const auto& [most, finer] : {std::pair{kQ4_K, kQ6_K}, {kQ5_K, kQ8_0}, {kQ6_K, kQ5_K}}) {
    for (const bool tied : {true, false}) {
      TinyRun::Kind kind{.activation = "int8", .num_threads = 2};
      kind.tiny = {.weight_type = most, .embedding_type = finer, .wide = true, .tied = tied};
      const TinySequence sequence = MakeSequence(1, 70);
      TinyRun fast(kind);
      const std::vector<float> whole = Alone(*fast.model, sequence);
      TinyRun chunked(kind);
      std::vector<float> last;
      for (std::int32_t first = 0; first < 70; first += 7) {
        last = RunStep(*chunked.model, {{&sequence, first, 7}})[0];
      }
      ExpectSameBits(whole, last, "in chunks");
      kind.ops = "reference";
      kind.num_threads = 1;
      TinyRun plain(kind);
      ExpectSameBits(Alone(*plain.model, sequence), whole, "by the reference loops");
    }
  }
}

TEST(ForwardPass, ABatchOfAnyMixtureGivesTheBitsOfEachSequenceAlone) {
  for (const TinyRun::Kind& kind : AllKinds()) {
    const std::vector<TinySequence> sequences = {MakeSequence(0, 33), MakeSequence(1, 1),
                                                 MakeSequence(2, 48), MakeSequence(3, 5)};
    LogitRows alone;
    for (const TinySequence& sequence : sequences) {
      TinyRun run(kind);
      alone.push_back(Alone(*run.model, sequence));
    }
    TinyRun run(kind);
    // Sequence 2 is decoding while the others prefill.
    RunStep(*run.model, {{&sequences[2], 0, 47}});
    const LogitRows batched = RunStep(*run.model, {{&sequences[3], 0, 5},
                                                   {&sequences[2], 47, 1},
                                                   {&sequences[0], 0, 33},
                                                   {&sequences[1], 0, 1}});
    ExpectSameBits(alone[3], batched[0], NameOf(kind));
    ExpectSameBits(alone[2], batched[1], NameOf(kind));
    ExpectSameBits(alone[0], batched[2], NameOf(kind));
    ExpectSameBits(alone[1], batched[3], NameOf(kind));
  }
}

TEST(ForwardPass, EveryChunkingGivesTheBitsOfTheWhole) {
  constexpr std::uint32_t kSeed = 20261129;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (const TinyRun::Kind& kind : AllKinds()) {
    const TinySequence sequence = MakeSequence(4, 44);
    TinyRun whole_run(kind);
    const std::vector<float> whole = Alone(*whole_run.model, sequence);
    for (int round = 0; round < 4; ++round) {
      TinyRun run(kind);
      LogitRows last;
      // The first round decodes one token at a time.
      for (std::int32_t first = 0; first < 44;) {
        const auto wanted = round == 0 ? 1 : static_cast<std::int32_t>(1 + random() % 17);
        const std::int32_t count = std::min(wanted, 44 - first);
        last = RunStep(*run.model, {{&sequence, first, count}});
        first += count;
      }
      ExpectSameBits(whole, last[0], NameOf(kind));
    }
  }
}

TEST(ForwardPass, ThreadsDoNotChangeBits) {
  for (TinyRun::Kind kind : AllKinds()) {
    const TinySequence sequence = MakeSequence(0, 90);
    TinyRun one(kind);
    const std::vector<float> expected = Alone(*one.model, sequence);
    for (const int num_threads : {2, 3, 5}) {
      kind.num_threads = num_threads;
      TinyRun run(kind);
      ExpectSameBits(expected, Alone(*run.model, sequence), NameOf(kind));
    }
  }
}

TEST(ForwardPass, ARowWithoutKvReadsTheCachedSlotAndLeavesItAsItIs) {
  for (const TinyRun::Kind& kind : AllKinds()) {
    TinySequence sequence = MakeSequence(0, 16);
    TinyRun run(kind);
    const std::vector<float> expected = Alone(*run.model, sequence);
    ExpectSameBits(expected, RunStep(*run.model, {{&sequence, 15, 1, 1}})[0], NameOf(kind));
    // Another token in that row changes the query, not the slot: the true token sees what it saw
    // before.
    TinySequence other = sequence;
    other.tokens[15] ^= 1u;
    RunStep(*run.model, {{&other, 15, 1, 1}});
    ExpectSameBits(expected, RunStep(*run.model, {{&sequence, 15, 1, 1}})[0], NameOf(kind));
  }
}

TEST(ForwardPass, ACopiedBlockContinuesLikeItsSource) {
  for (const TinyRun::Kind& kind : AllKinds()) {
    TinySequence source = MakeSequence(0, 12);
    TinyRun run(kind);
    const std::vector<float> expected = Alone(*run.model, source);
    TinySequence copy = source;
    copy.blocks[2] = 1;
    run.model->ZeroBlock(base::KvGroupId{0}, base::BlockId{1});
    run.model->CopyBlock(base::KvGroupId{0}, base::BlockId{source.blocks[2]}, base::BlockId{1}, 3);
    ExpectSameBits(expected, RunStep(*run.model, {{&copy, 11, 1}})[0], NameOf(kind));
  }
}

TEST(ForwardPassG6, ATiedHeadIsTheEmbeddingAndAnOwnHeadIsItsOwn) {
  const TinySequence sequence = MakeSequence(0, 9);
  for (const bool tied : {true, false}) {
    const fixtures::TinyOptions tiny = {.tied = tied};
    for (const char* const ops : {"auto", "reference"}) {
      TinyRun run({.ops = ops, .tiny = tiny});
      const std::vector<float> logits = Alone(*run.model, sequence);
      const std::vector<double> expected =
          NaiveLlamaLogits(fixtures::TinyGguf(tiny), sequence.tokens);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(logits[i], expected[i], 1e-3) << ops << " " << tied << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::model
