#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/model_executor.h"
#include "tests/engine/engine_world.h"

namespace pagoda::engine {

// One of the replies: the seed of its request, and its choice.
using ReplyKey = std::pair<std::uint64_t, std::uint32_t>;
// Digests of logit rows, by the reply and the position drawn.
using RowBits = std::map<std::pair<ReplyKey, std::uint32_t>, std::uint64_t>;

// A model that remembers a digest of every row of its last step.
class DigestingModel final : public model::Model {
 public:
  explicit DigestingModel(std::unique_ptr<model::Model> inner) : inner_(std::move(inner)) {}

  const model::ModelInfo& info() const override { return inner_->info(); }
  absl::Status AllocateKv(std::int32_t num_blocks) override {
    return inner_->AllocateKv(num_blocks);
  }
  void ZeroBlock(base::KvGroupId group, base::BlockId block) override {
    inner_->ZeroBlock(group, block);
  }
  void CopyBlock(base::KvGroupId group, base::BlockId source, base::BlockId target,
                 std::int32_t num_slots) override {
    inner_->CopyBlock(group, source, target, num_slots);
  }
  absl::Status Forward(const model::ModelInput& input) override {
    const absl::Status status = inner_->Forward(input);
    row_digests_.clear();
    for (std::int32_t row = 0; row < std::ssize(input.logit_rows); ++row) {
      std::uint64_t digest = 0xCBF29CE484222325u;
      for (const float logit : inner_->Logits(row).first(info().vocabulary_size)) {
        digest = (digest ^ std::bit_cast<std::uint32_t>(logit)) * 0x100000001B3u;
      }
      row_digests_.push_back(digest);
    }
    return status;
  }
  std::span<float> Logits(std::int32_t row) override { return inner_->Logits(row); }
  std::unique_ptr<model::Sampler> MakeSampler() override { return inner_->MakeSampler(); }

  std::uint64_t row_digest(std::size_t row) const { return row_digests_.at(row); }

 private:
  const std::unique_ptr<model::Model> inner_;
  std::vector<std::uint64_t> row_digests_;
};

// Runs steps on the model and keeps the bits of every row that was sampled. A row that is computed
// twice must have the same bits twice.
class BitKeeper final : public Executor {
 public:
  BitKeeper(std::unique_ptr<DigestingModel> model, const ModelExecutorOptions& options,
            RowBits& bits)
      : model_(model.get()),
        inner_(std::move(model), options),
        seeds_(static_cast<std::size_t>(options.limits.max_num_seqs)),
        bits_(bits) {}

  absl::Status Submit(const scheduler::StepPlan& plan) override {
    for (const auto& opening : plan.opened) seeds_[opening.slot.value()] = opening.sampling.seed;
    const absl::Status status = inner_.Submit(plan);
    for (const scheduler::SampleRequest& sample : plan.samples) {
      Keep(sample.slot, sample.choice, sample.position, sample.row);
    }
    for (const scheduler::ScoreRequest& score : plan.scores) {
      for (std::uint32_t i = 0; i < score.tokens.count; ++i) {
        Keep(score.slot, 0, score.first_position + i, score.first_row + i);
      }
    }
    return status;
  }
  absl::StatusOr<const scheduler::StepResult*> Await() override { return inner_.Await(); }
  int max_in_flight() const override { return inner_.max_in_flight(); }

 private:
  void Keep(base::SlotId slot, std::uint32_t choice, std::uint32_t position, std::uint32_t row) {
    const auto [kept, is_new] =
        bits_.insert({{{seeds_[slot.value()], choice}, position}, model_->row_digest(row)});
    EXPECT_EQ(kept->second, model_->row_digest(row)) << "position " << position;
  }

  const DigestingModel* const model_;
  ModelExecutor inner_;
  std::vector<std::uint64_t> seeds_;
  RowBits& bits_;
};

}  // namespace pagoda::engine
