#include "engine/model_executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pagoda::engine {

using scheduler::StepPlan;

ModelExecutor::ModelExecutor(std::unique_ptr<model::Model> model,
                             const ModelExecutorOptions& options)
    : model_(std::move(model)),
      eos_tokens_(options.eos_tokens),
      builder_(options.limits),
      sampler_(model_->MakeSampler()) {
  masked_tokens_.reserve(eos_tokens_.size() + static_cast<std::size_t>(options.max_stop_token_ids));
  tasks_.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  const auto max_rows = static_cast<std::size_t>(options.limits.max_logit_rows);
  task_samples_.reserve(max_rows);
  row_is_taken_.reserve(max_rows);
  shared_logits_.resize(model_->info().vocabulary_size);
  drawn_.reserve(max_rows);
  tokens_.reserve(max_rows);
  result_.samples.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  result_.tokens.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
}

ModelExecutor::~ModelExecutor() = default;

absl::Status ModelExecutor::Submit(const StepPlan& plan) {
  PAGODA_CHECK(!has_step_);
  has_step_ = true;
  result_.job = plan.job;
  result_.samples.clear();
  result_.tokens.clear();
  UpdateSampler(plan);
  ApplyMemoryEffects(plan);
  const model::ModelInput& input = builder_.Build(plan);
  step_status_ = input.sequences.empty() ? absl::OkStatus() : model_->Forward(input);
  if (step_status_.ok()) DrawSamples(plan);
  return absl::OkStatus();
}

absl::StatusOr<const scheduler::StepResult*> ModelExecutor::Await() {
  PAGODA_CHECK(has_step_);
  has_step_ = false;
  if (!step_status_.ok()) return step_status_;
  return &result_;
}

// Requires: before the builder sees the plan, which forgets which rows were open.
void ModelExecutor::UpdateSampler(const StepPlan& plan) {
  for (const base::SlotId slot : plan.closed) {
    if (builder_.IsOpen(slot)) sampler_->Close(slot);
  }
  for (const scheduler::SlotOpening& opening : plan.opened) OpenInSampler(plan, opening);
}

void ModelExecutor::OpenInSampler(const StepPlan& plan, const scheduler::SlotOpening& opening) {
  const auto tokens = std::span(plan.tokens);
  const auto stop_ids = tokens.subspan(opening.stop_token_ids.begin, opening.stop_token_ids.count);
  masked_tokens_.assign(stop_ids.begin(), stop_ids.end());
  if (!opening.sampling.ignore_eos) {
    masked_tokens_.insert(masked_tokens_.end(), eos_tokens_.begin(), eos_tokens_.end());
  }
  sampler_->Open(
      opening.slot,
      {.params = opening.sampling,
       .history = tokens.subspan(opening.history.begin, opening.history.count),
       .num_prompt_tokens = static_cast<std::int32_t>(opening.num_prompt_tokens),
       .logit_bias =
           std::span(plan.logit_bias).subspan(opening.logit_bias.begin, opening.logit_bias.count),
       .masked_below_min_tokens = masked_tokens_});
}

void ModelExecutor::ApplyMemoryEffects(const StepPlan& plan) {
  for (const scheduler::MemoryEffect& effect : plan.memory_effects) {
    switch (effect.kind) {
      case scheduler::MemoryEffect::Kind::kZero: {
        const scheduler::BlockZero& zero = plan.zeros[effect.index];
        model_->ZeroBlock(zero.group, zero.block);
        break;
      }
      case scheduler::MemoryEffect::Kind::kCopy: {
        const scheduler::BlockCopy& copy = plan.copies[effect.index];
        model_->CopyBlock(copy.group, copy.source, copy.target,
                          static_cast<std::int32_t>(copy.num_slots));
        break;
      }
    }
  }
}

// A draw changes its row in place. So of several choices that draw from one row, all but the first
// draw from a copy, and before it does.
void ModelExecutor::DrawSamples(const StepPlan& plan) {
  tasks_.clear();
  task_samples_.clear();
  row_is_taken_.assign(plan.rows.size(), false);
  tokens_.resize(plan.samples.size());
  for (std::uint32_t i = 0; i < plan.samples.size(); ++i) {
    const scheduler::SampleRequest& request = plan.samples[i];
    PAGODA_CHECK(request.row < plan.rows.size());
    if (row_is_taken_[request.row]) {
      tokens_[i] = DrawFromCopy(request);
      continue;
    }
    row_is_taken_[request.row] = true;
    task_samples_.push_back(i);
    tasks_.push_back({.slot = request.slot,
                      .choice = request.choice,
                      .position = request.position,
                      .logits = model_->Logits(static_cast<std::int32_t>(request.row))});
  }
  drawn_.resize(tasks_.size());
  sampler_->SampleBatch(tasks_, drawn_);
  for (std::size_t t = 0; t < drawn_.size(); ++t) tokens_[task_samples_[t]] = drawn_[t];
  for (std::size_t i = 0; i < tokens_.size(); ++i) Report(plan.samples[i], tokens_[i]);
}

model::SampledToken ModelExecutor::DrawFromCopy(const scheduler::SampleRequest& request) {
  const std::span<const float> row = model_->Logits(static_cast<std::int32_t>(request.row));
  std::copy_n(row.begin(), shared_logits_.size(), shared_logits_.begin());
  return sampler_->Sample(request.slot, request.choice, request.position, shared_logits_);
}

void ModelExecutor::Report(const scheduler::SampleRequest& request,
                           const model::SampledToken& drawn) {
  const auto begin = static_cast<std::uint32_t>(result_.tokens.size());
  result_.samples.push_back({.slot = request.slot,
                             .slot_generation = request.slot_generation,
                             .choice = request.choice,
                             .position = request.position,
                             .tokens = {.begin = begin, .count = drawn.finite ? 1u : 0u},
                             .finite = drawn.finite});
  if (!drawn.finite) return;
  result_.tokens.push_back(drawn.token);
  builder_.SetLastToken(request.slot, drawn.token);
}

}  // namespace pagoda::engine
