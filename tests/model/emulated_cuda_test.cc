// The whole model on the CUDA backend under the emulator, beside the CPU backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/model/forward_fixture.h"

namespace pagoda::model {
namespace {

TinyRun::Kind CudaKind(formats::GgufType type = formats::GgufType::kBf16) {
  return {.activation = "auto",
          .kv = "bf16",
          .tiny = {.weight_type = type, .embedding_type = type, .tied = false, .head_size = 64},
          .device = "emulated-cuda"};
}

TinyRun::Kind CpuKind() {
  TinyRun::Kind kind = CudaKind();
  kind.device = "cpu";
  return kind;
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

std::size_t Top(const std::vector<float>& logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(EmulatedCuda, ReportsItsOwnNumerics) {
  const TinyRun run(CudaKind(formats::GgufType::kQ4_1));
  EXPECT_EQ(run.model->info().numerics_id, "cuda-mma16-1/bf16");
  EXPECT_EQ(run.model->info().activation_dtype, "bf16");
  EXPECT_EQ(run.model->info().weight_format, "Q4_1");
}

TEST(EmulatedCuda, ABatchOfAnyMixtureGivesTheBitsOfEachSequenceAlone) {
  const std::vector<TinySequence> sequences = {MakeSequence(0, 33), MakeSequence(1, 1),
                                               MakeSequence(2, 48), MakeSequence(3, 5)};
  TinyRun apart(CudaKind());
  LogitRows alone;
  for (const TinySequence& sequence : sequences) alone.push_back(Alone(*apart.model, sequence));
  TinyRun run(CudaKind());
  // Sequence 2 is decoding while the others prefill.
  RunStep(*run.model, {{&sequences[2], 0, 47}});
  const LogitRows batched = RunStep(*run.model, {{&sequences[3], 0, 5},
                                                 {&sequences[2], 47, 1},
                                                 {&sequences[0], 0, 33},
                                                 {&sequences[1], 0, 1}});
  ExpectSameBits(alone[3], batched[0], "a short prompt");
  ExpectSameBits(alone[2], batched[1], "a decode row");
  ExpectSameBits(alone[0], batched[2], "a long prompt");
  ExpectSameBits(alone[1], batched[3], "one token");
}

TEST(EmulatedCuda, EveryChunkingAndDecodeGiveTheBitsOfTheWhole) {
  const TinySequence sequence = MakeSequence(4, 44);
  TinyRun whole_run(CudaKind());
  const std::vector<float> whole = Alone(*whole_run.model, sequence);
  for (const std::int32_t chunk : {1, 7, 16, 43}) {
    TinyRun run(CudaKind());
    LogitRows last;
    for (std::int32_t first = 0; first < 44; first += chunk) {
      last = RunStep(*run.model, {{&sequence, first, std::min(chunk, 44 - first)}});
    }
    ExpectSameBits(whole, last[0], "chunks of " + std::to_string(chunk));
  }
}

// A full hit recomputes one token, whose row stores nothing and reads what is cached.
TEST(EmulatedCuda, ATokenWhoseKvIsCachedGivesTheSameBits) {
  const TinySequence sequence = MakeSequence(5, 24);
  TinyRun run(CudaKind());
  const std::vector<float> cold = Alone(*run.model, sequence);
  ExpectSameBits(cold, RunStep(*run.model, {{&sequence, 23, 1, 1}})[0], "hit");
}

// Of the logits of a step: the largest difference over the largest logit.
double Difference(const std::vector<float>& found, const std::vector<float>& wanted) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference = std::max(difference, std::abs(double{found[i]} - wanted[i]));
    largest = std::max(largest, std::abs(double{wanted[i]}));
  }
  return difference / largest;
}

TEST(EmulatedCuda, GreedyIdsAreTheCpusOrPartWhereTheTopTwoAreClose) {
  constexpr std::size_t kSteps = 12;
  constexpr double kClose = 2e-2;  // of the top logit: random weights say nothing about its size
  int num_equal = 0;
  double largest = 0;
  TinyRun cuda(CudaKind());
  TinyRun cpu(CpuKind());
  for (std::uint32_t prompt = 0; prompt < 8; ++prompt) {
    TinySequence sequence = MakeSequence(prompt % 4, 9 + 5 * prompt);
    for (base::TokenId& token : sequence.tokens) token = (token + 17 * prompt) % 512;
    std::size_t first = 0;
    for (std::size_t step = 0; step < kSteps; ++step) {
      const auto length = sequence.tokens.size();
      sequence.blocks = MakeSequence(prompt % 4, length).blocks;
      const Share share = {&sequence, static_cast<std::int32_t>(first),
                           static_cast<std::int32_t>(length - first)};
      const std::vector<float> found = RunStep(*cuda.model, {share})[0];
      const std::vector<float> wanted = RunStep(*cpu.model, {share})[0];
      largest = std::max(largest, Difference(found, wanted));
      first = length;
      const std::size_t top = Top(wanted);
      if (Top(found) == top) {
        ++num_equal;
      } else {
        EXPECT_LE(wanted[top] - wanted[Top(found)], kClose * wanted[top]) << "prompt " << prompt;
      }
      sequence.tokens.push_back(static_cast<base::TokenId>(top % 512));
    }
  }
  RecordProperty("equal", num_equal);
  RecordProperty("largest", std::to_string(largest));
  EXPECT_GE(num_equal, 92);
  EXPECT_LE(largest, 2e-2);
  EXPECT_GE(largest, 1e-4);
}

float LargestMagnitude(const std::vector<float>& logits) {
  float largest = 0;
  for (const float logit : logits) largest = std::max(largest, std::abs(logit));
  return largest;
}

// H1: numbers beyond 65504, where fp16 ends, are ordinary ones in bf16 and fp32. One token: there
// is nothing that rounding could tip over in a softmax.
TEST(NumericsH1, ResidualsBeyondFp16GiveTheSameAnswerInBf16AndFp32) {
  TinyRun::Kind kind = CudaKind();
  kind.tiny.norm_weight = 1e5f;
  TinyRun cuda(kind);
  kind.device = "cpu";
  kind.activation = "f32";
  TinyRun bf16_kv(kind);
  kind.kv = "f32";
  TinyRun exact(kind);
  const TinySequence one = MakeSequence(0, 1), many = MakeSequence(1, 40);
  const std::vector<float> wanted = Alone(*exact.model, one);
  EXPECT_GT(LargestMagnitude(wanted), 65504.0f);
  for (TinyRun* const run : {&cuda, &bf16_kv, &exact}) {
    const std::vector<float> found = Alone(*run->model, one);
    EXPECT_EQ(Top(found), Top(wanted));
    EXPECT_LE(Difference(found, wanted), 2e-2);
    for (const float logit : Alone(*run->model, many)) ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST(NumericsH1, Fp16IsRefusedByName) {
  const std::string path = fixtures::TemporaryPath("fp16_test.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path, CudaKind().tiny).ok());
  for (const std::string device : {"cpu", "emulated-cuda"}) {
    for (const bool of_kv : {false, true}) {
      ModelOptions options;
      options.device = device;
      (of_kv ? options.kv_cache_dtype : options.activation_dtype) = "f16";
      const absl::Status refused = Model::Load(path, options).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(refused.message().find("dtype is 'f16'"), std::string_view::npos) << refused;
    }
  }
}

TEST(EmulatedCuda, RefusesWhatItHasNotByName) {
  const std::string path = fixtures::TemporaryPath("emulated_cuda_test.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path, CudaKind().tiny).ok());
  ModelOptions options;
  options.device = "emulated-cuda";
  options.kv_cache_dtype = "f32";
  EXPECT_EQ(Model::Load(path, options).status().message(),
            "the cuda backend has no KV type f32; it has bf16");
  options = {};
  options.device = "emulated-cuda";
  options.activation_dtype = "int8";
  EXPECT_EQ(Model::Load(path, options).status().message(),
            "activation-dtype is 'int8'; this backend has auto or bf16");
  options = {};
  options.device = "emulated-cuda";
  options.block_size = 2;
  EXPECT_EQ(Model::Load(path, options).status().message(),
            "the cuda backend has no block size 2; it has 4, 8, 16, 32, 64");
}

}  // namespace
}  // namespace pagoda::model
