// Races between the threads of a kernel, found by the thread sanitizer whatever their outcome: any
// report ends the process.
#include "kernels/emulation/race_watch.h"
#include "tests/kernels/cuda/planted_fixture.h"
#include "tests/kernels/suite/paged_sequence.h"

extern "C" const char* __tsan_default_options() { return "halt_on_error=1"; }

namespace pagoda::kernels::cuda {
namespace {

constexpr int kExitOfAReport = 66;
static_assert(emulation::kWatchesRaces);

using RacesTest = PlantedFaultTest;

TEST_F(RacesTest, ProductsAttentionAndMovesHaveNoneUnderAnySchedule) {
  const Bytes sound = Outcome({});
  for (const Schedule& schedule : HostileSchedules()) {
    EXPECT_TRUE(Outcome(schedule) == sound) << Describe(schedule);
  }
}

// Groups of 3 and of 12 heads, by the prefill and by both decode kernels.
TEST_F(RacesTest, AttentionOfNoHeadSizeHasAny) {
  for (const std::int32_t head_size : {32, 64, 96, 128, 256}) {
    for (const std::int32_t heads : {3, 12}) {
      Sequence sequence(
          {.query_heads = heads, .kv_heads = 1, .head_size = head_size, .block_size = 16}, 330, 5);
      sequence.Run(*ops_, 310, 12, 12);
      sequence.Run(*ops_, 329, 1, 1);
    }
  }
}

TEST_F(RacesTest, SamplingHasNone) {
  std::mt19937 random(6);
  const Matrix logits = RandomMatrix(3, 300, random, 3.0f);
  const std::vector<SampleRow> rows = {
      {.logits = {logits.view().Row(0), 300},
       .temperature = 0.8f,
       .top_p = 0.9f,
       .top_k = 40,
       .min_p = 0.01f,
       .seed = 3},
      {.logits = {logits.view().Row(1), 300}, .temperature = 1.0f, .top_p = 0.5f, .seed = 4},
      {.logits = {logits.view().Row(2), 300}, .temperature = 0.0f}};
  std::vector<SampleOutcome> outcomes(rows.size());
  ops_->Sample({rows, outcomes}, stream_);
  Finish();
}

TEST_F(RacesTest, WorkOnRowsHasNone) {
  std::mt19937 random(7);
  const OwnedWeight table({RandomWeight(ElementType::kBf16, 40, 704, random)},
                          WeightRole::kEmbedding, ActivationType::kBf16, *ops_);
  const std::vector<base::TokenId> tokens = {3, 3, 39};
  Matrix rows(3, 704), sums = RandomMatrix(3, 704, random), products(3, 352);
  ops_->Embed({table.get(), tokens, rows.view()}, stream_);
  ops_->Add({rows.view(), sums.view()}, stream_);
  ops_->SiluMul({sums.view(), products.view()}, stream_);
  Finish();
}

using RacesDeathTest = RacesTest;

TEST_F(RacesDeathTest, SilentOnesAreFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const SilentRace& race : SilentRaces()) {
    EXPECT_EXIT(Outcome(race.schedule), testing::ExitedWithCode(kExitOfAReport), "data race")
        << "mutation " << static_cast<int>(race.mutation) << ", " << Describe(race.schedule);
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda
