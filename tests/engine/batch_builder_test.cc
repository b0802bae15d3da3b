#include "engine/batch_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pagoda::engine {
namespace {

using base::BlockId;
using base::KvGroupId;
using base::SlotId;
using base::TokenId;
using scheduler::StepPlan;
using testing::ElementsAre;

constexpr BatchLimits kLimits{.num_kv_groups = 2,
                              .block_size = 4,
                              .max_num_seqs = 3,
                              .max_num_batched_tokens = 16,
                              .max_logit_rows = 4,
                              .max_model_len = 16};

// Writes plans the way the scheduler does.
class PlanWriter {
 public:
  PlanWriter& Close(std::uint32_t slot) {
    plan_.closed.push_back(SlotId(slot));
    return *this;
  }
  PlanWriter& Open(std::uint32_t slot, std::vector<TokenId> history) {
    const auto begin = static_cast<std::uint32_t>(plan_.tokens.size());
    plan_.tokens.insert(plan_.tokens.end(), history.begin(), history.end());
    plan_.opened.push_back({.slot = SlotId(slot),
                            .sampling = {},
                            .history = {begin, static_cast<std::uint32_t>(history.size())},
                            .logit_bias = {},
                            .stop_token_ids = {},
                            .bad_words = {},
                            .allowed_words = {},
                            .logprob_token_ids = {}});
    return *this;
  }
  PlanWriter& Append(std::uint32_t group, std::uint32_t block, std::int32_t replace_index = -1) {
    plan_.block_appends.push_back({KvGroupId(group), BlockId(block), replace_index});
    return *this;
  }
  // Takes the blocks appended since the last work item.
  PlanWriter& Work(std::uint32_t slot, std::uint32_t first,
                   std::vector<scheduler::PlanToken> tokens) {
    const auto begin = static_cast<std::uint32_t>(plan_.plan_tokens.size());
    const auto blocks_end = static_cast<std::uint32_t>(plan_.block_appends.size());
    plan_.plan_tokens.insert(plan_.plan_tokens.end(), tokens.begin(), tokens.end());
    plan_.work.push_back({.slot = SlotId(slot),
                          .first_position = first,
                          .tokens = {begin, static_cast<std::uint32_t>(tokens.size())},
                          .appended_blocks = {blocks_taken_, blocks_end - blocks_taken_}});
    blocks_taken_ = blocks_end;
    return *this;
  }
  PlanWriter& Row(std::uint32_t work, std::uint32_t offset) {
    plan_.rows.push_back({work, offset});
    return *this;
  }
  const StepPlan& plan() const { return plan_; }

 private:
  StepPlan plan_;
  std::uint32_t blocks_taken_ = 0;
};

constexpr scheduler::PlanToken kLastOfSlot{.last_of_slot = true};

TEST(BatchBuilder, LaysWorkItemsOneBehindTheOther) {
  BatchBuilder builder(kLimits);
  PlanWriter writer;
  writer.Open(0, {1, 2, 3}).Open(2, {7, 8});
  writer.Append(0, 5).Append(1, 6).Work(0, 0, {{1}, {2}, {3}});
  writer.Append(0, 9).Append(1, 8).Work(2, 0, {{7}, {8}});
  writer.Row(0, 2).Row(1, 1);
  const model::ModelInput& input = builder.Build(writer.plan());
  EXPECT_THAT(input.tokens, ElementsAre(1, 2, 3, 7, 8));
  EXPECT_THAT(input.logit_rows, ElementsAre(2, 4));
  ASSERT_EQ(input.sequences.size(), 2u);
  EXPECT_EQ(input.sequences[1].slot, SlotId(2));
  EXPECT_EQ(input.sequences[1].first_row, 3);
  EXPECT_EQ(input.sequences[1].num_tokens, 2);
  EXPECT_THAT(input.sequences[1].block_tables[0], ElementsAre(9));
  EXPECT_THAT(input.sequences[1].block_tables[1], ElementsAre(8));
}

TEST(BatchBuilder, KeepsTablesBetweenPlansAndChangesThemByDifferences) {
  BatchBuilder builder(kLimits);
  PlanWriter first;
  first.Open(1, {1, 2, 3, 4}).Append(0, 5).Append(1, 6).Work(1, 0, {{1}, {2}, {3}, {4}});
  builder.Build(first.plan());
  PlanWriter second;
  second.Append(0, 7).Append(1, 8).Append(0, 11, 0).Work(1, 4, {{9}});
  const model::ModelInput& input = builder.Build(second.plan());
  EXPECT_EQ(input.sequences[0].first_position, 4);
  EXPECT_THAT(input.sequences[0].block_tables[0], ElementsAre(11, 7));
  EXPECT_THAT(input.sequences[0].block_tables[1], ElementsAre(6, 8));
}

TEST(BatchBuilder, ARowThatChangesHandsInOnePlanBeginsEmpty) {
  BatchBuilder builder(kLimits);
  PlanWriter first;
  first.Open(1, {1}).Append(0, 5).Append(1, 6).Work(1, 0, {{1}});
  builder.Build(first.plan());
  PlanWriter second;
  second.Close(1).Open(1, {2}).Append(0, 7).Append(1, 8).Work(1, 0, {{2}});
  EXPECT_THAT(builder.Build(second.plan()).sequences[0].block_tables[0], ElementsAre(7));
}

TEST(BatchBuilder, LastOfSlotIsTheNewestSampleOrElseTheEndOfTheHistory) {
  BatchBuilder builder(kLimits);
  PlanWriter first;
  first.Open(0, {1, 2}).Append(0, 5).Append(1, 6).Work(0, 1, {kLastOfSlot});
  EXPECT_THAT(builder.Build(first.plan()).tokens, ElementsAre(2));
  builder.SetLastToken(SlotId(0), 44);
  PlanWriter second;
  second.Work(0, 2, {kLastOfSlot});
  EXPECT_THAT(builder.Build(second.plan()).tokens, ElementsAre(44));
}

TEST(BatchBuilder, TokensWhoseKvIsThereAlreadyAreSaidToBe) {
  BatchBuilder builder(kLimits);
  PlanWriter writer;
  writer.Open(0, {1, 2, 3, 4}).Append(0, 5).Append(1, 6).Work(0, 3, {{4}});
  StepPlan plan = writer.plan();
  plan.work[0].num_without_kv = 1;
  EXPECT_EQ(builder.Build(plan).sequences[0].num_without_kv, 1);
}

TEST(BatchBuilder, ClosingARowThatIsNotOpenDoesNothing) {
  BatchBuilder builder(kLimits);
  EXPECT_TRUE(builder.Build(PlanWriter().Close(2).plan()).sequences.empty());
  EXPECT_FALSE(builder.IsOpen(SlotId(2)));
}

TEST(BatchBuilderDeathTest, WorkBeyondTheBlocksOfItsRowIsOurBug) {
  BatchBuilder builder(kLimits);
  PlanWriter writer;
  writer.Open(0, {1, 2, 3, 4, 5}).Append(0, 5).Append(1, 6).Work(0, 0, {{1}, {2}, {3}, {4}, {5}});
  EXPECT_DEATH(builder.Build(writer.plan()), "context <=");
}

TEST(BatchBuilderDeathTest, WorkForARowThatIsNotOpenIsOurBug) {
  BatchBuilder builder(kLimits);
  EXPECT_DEATH(builder.Build(PlanWriter().Work(0, 0, {{1}}).plan()), "open");
}

TEST(BatchBuilderDeathTest, TheNullBlockInATableIsOurBug) {
  BatchBuilder builder(kLimits);
  PlanWriter writer;
  writer.Open(0, {1}).Append(0, 0).Work(0, 0, {{1}});
  EXPECT_DEATH(builder.Build(writer.plan()), "kNullBlock");
}

}  // namespace
}  // namespace pagoda::engine
