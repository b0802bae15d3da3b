#include "engine/model_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/reference/reference_ops.h"

namespace pagoda::engine {
namespace {

using base::BlockId;
using base::SlotId;
using base::TokenId;
using scheduler::MemoryEffect;
using scheduler::StepPlan;
using testing::ElementsAre;

constexpr std::uint32_t kVocabulary = 8;
constexpr std::size_t kPaddedVocabulary = 12;
constexpr TokenId kEos = 7;

// A model that writes down what it is told, and whose logits a test sets.
class NotingModel final : public model::Model {
 public:
  NotingModel() : ops_(kernels::MakeReferenceOps()) { info_.vocabulary_size = kVocabulary; }

  const model::ModelInfo& info() const override { return info_; }
  absl::Status AllocateKv(std::int32_t) override { return absl::OkStatus(); }
  void ZeroBlock(base::KvGroupId, BlockId block) override {
    notes.push_back(absl::StrCat("zero ", block.value()));
  }
  void CopyBlock(base::KvGroupId, BlockId source, BlockId target, std::int32_t slots) override {
    notes.push_back(absl::StrCat("copy ", source.value(), " to ", target.value(), " ", slots));
  }
  absl::Status Forward(const model::ModelInput& input) override {
    notes.push_back(absl::StrCat("forward ", input.tokens.size()));
    rows_.assign(input.logit_rows.size(), logits);
    return forward_status;
  }
  std::span<float> Logits(std::int32_t row) override {
    return rows_.at(static_cast<std::size_t>(row));
  }
  std::unique_ptr<model::Sampler> MakeSampler() override {
    return std::make_unique<model::Sampler>(*ops_, 2, kVocabulary);
  }

  std::vector<float> logits = std::vector<float>(kPaddedVocabulary);
  absl::Status forward_status;
  std::vector<std::string> notes;

 private:
  const std::unique_ptr<kernels::Ops> ops_;
  model::ModelInfo info_;
  std::vector<std::vector<float>> rows_;
};

struct Fixture {
  Fixture() {
    auto made = std::make_unique<NotingModel>();
    model = made.get();
    executor = std::make_unique<ModelExecutor>(
        std::move(made), ModelExecutorOptions{.limits = {.block_size = 4,
                                                         .max_num_seqs = 2,
                                                         .max_num_batched_tokens = 16,
                                                         .max_logit_rows = 2,
                                                         .max_model_len = 16},
                                              .eos_tokens = {kEos}});
  }
  NotingModel* model = nullptr;
  std::unique_ptr<ModelExecutor> executor;
};

// One row with a prompt of three tokens, greedy.
StepPlan FirstStep(const base::SamplingParams& sampling = {.temperature = 0.0f}) {
  StepPlan plan;
  plan.job = base::JobId(1);
  plan.tokens = {1, 2, 3, 5};  // the history, then a stop id
  plan.opened.push_back({.slot = SlotId(1),
                         .sampling = sampling,
                         .num_prompt_tokens = 3,
                         .history = {0, 3},
                         .logit_bias = {},
                         .stop_token_ids = {3, 1},
                         .bad_words = {},
                         .allowed_words = {},
                         .logprob_token_ids = {}});
  plan.plan_tokens = {{1}, {2}, {3}};
  plan.block_appends.push_back({base::KvGroupId(0), BlockId(2)});
  plan.work.push_back({.slot = SlotId(1), .tokens = {0, 3}, .appended_blocks = {0, 1}});
  plan.rows.push_back({0, 2});
  plan.samples.push_back({.slot = SlotId(1), .slot_generation = 6, .position = 3});
  return plan;
}

TEST(ModelExecutor, DrawsOneTokenPerSampleAndNamesItsRow) {
  Fixture f;
  f.model->logits[4] = 3.0f;
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  const auto result = f.executor->Await();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ((*result)->job, base::JobId(1));
  EXPECT_THAT((*result)->tokens, ElementsAre(4));
  ASSERT_EQ((*result)->samples.size(), 1u);
  EXPECT_EQ((*result)->samples[0].slot, SlotId(1));
  EXPECT_EQ((*result)->samples[0].slot_generation, 6u);
  EXPECT_EQ((*result)->samples[0].position, 3u);
}

TEST(ModelExecutor, MemoryEffectsComeInPlanOrderBeforeTheForwardPass) {
  Fixture f;
  StepPlan plan = FirstStep();
  plan.zeros = {{base::KvGroupId(0), BlockId(2)}, {base::KvGroupId(0), BlockId(3)}};
  plan.copies = {{base::KvGroupId(0), BlockId(9), BlockId(2), 2}};
  plan.memory_effects = {{MemoryEffect::Kind::kZero, 0},
                         {MemoryEffect::Kind::kCopy, 0},
                         {MemoryEffect::Kind::kZero, 1}};
  ASSERT_TRUE(f.executor->Submit(plan).ok());
  EXPECT_THAT(f.model->notes, ElementsAre("zero 2", "copy 9 to 2 2", "zero 3", "forward 3"));
}

TEST(ModelExecutor, APlanOfEffectsAloneRunsNoForwardPass) {
  Fixture f;
  StepPlan plan;
  plan.job = base::JobId(1);
  plan.zeros = {{base::KvGroupId(0), BlockId(2)}};
  plan.memory_effects = {{MemoryEffect::Kind::kZero, 0}};
  ASSERT_TRUE(f.executor->Submit(plan).ok());
  EXPECT_THAT(f.model->notes, ElementsAre("zero 2"));
  EXPECT_TRUE(f.executor->Await().ok());
}

TEST(ModelExecutor, AFailedForwardPassIsToldByAwaitAndTheNextStepRuns) {
  Fixture f;
  f.model->forward_status = absl::InternalError("device trouble");
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  EXPECT_EQ(f.executor->Await().status(), f.model->forward_status);
  f.model->forward_status = absl::OkStatus();
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  EXPECT_TRUE(f.executor->Await().ok());
}

TEST(ModelExecutor, ARowThatIsNotFiniteGivesNoToken) {
  Fixture f;
  f.model->logits[2] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  const auto result = f.executor->Await();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE((*result)->samples[0].finite);
  EXPECT_EQ((*result)->samples[0].tokens.count, 0u);
  EXPECT_TRUE((*result)->tokens.empty());
}

TEST(ModelExecutor, PaddingBehindTheVocabularyIsNeverDrawn) {
  Fixture f;
  f.model->logits[kVocabulary + 1] = 100.0f;
  f.model->logits[6] = 1.0f;
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  EXPECT_THAT((*f.executor->Await())->tokens, ElementsAre(6));
}

TEST(ModelExecutor, EosAndStopIdsAreMaskedBelowMinTokens) {
  Fixture f;
  f.model->logits[kEos] = 9.0f;
  f.model->logits[5] = 8.0f;
  f.model->logits[3] = 1.0f;
  ASSERT_TRUE(f.executor->Submit(FirstStep({.temperature = 0.0f, .min_tokens = 1})).ok());
  EXPECT_THAT((*f.executor->Await())->tokens, ElementsAre(3));
  ASSERT_TRUE(
      f.executor->Submit(FirstStep({.temperature = 0.0f, .min_tokens = 1, .ignore_eos = true}))
          .ok());
  EXPECT_THAT((*f.executor->Await())->tokens, ElementsAre(kEos));
}

TEST(ModelExecutor, ARowKeepsItsTablesUntilItIsClosed) {
  Fixture f;
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  ASSERT_TRUE(f.executor->Await().ok());
  StepPlan second;
  second.job = base::JobId(2);
  second.plan_tokens = {{.last_of_slot = true}};
  second.work.push_back(
      {.slot = SlotId(1), .first_position = 3, .tokens = {0, 1}, .appended_blocks = {}});
  ASSERT_TRUE(f.executor->Submit(second).ok());
  ASSERT_TRUE(f.executor->Await().ok());
  StepPlan closing = second;
  closing.closed = {SlotId(1), SlotId(0)};
  EXPECT_DEATH((void)f.executor->Submit(closing), "open");
}

TEST(ModelExecutorDeathTest, ASecondStepInFlightIsOurBug) {
  Fixture f;
  ASSERT_TRUE(f.executor->Submit(FirstStep()).ok());
  EXPECT_DEATH((void)f.executor->Submit(FirstStep()), "has_step_");
}

}  // namespace
}  // namespace pagoda::engine
