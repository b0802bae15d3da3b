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
  masked_tokens_.reserve(eos_tokens_.size() + base::kMaxStopTokenIds);
  tasks_.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  score_tasks_.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  drawn_.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  result_.samples.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  result_.prompt_scores.reserve(static_cast<std::size_t>(options.limits.max_num_seqs));
  result_.tokens.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  result_.scores.reserve(static_cast<std::size_t>(options.limits.max_logit_rows));
  result_.alternatives.reserve(static_cast<std::size_t>(options.limits.max_logit_rows) *
                               base::kMaxAlternatives);
}

ModelExecutor::~ModelExecutor() = default;

absl::Status ModelExecutor::Submit(const StepPlan& plan) {
  PAGODA_CHECK(!has_step_);
  has_step_ = true;
  result_.job = plan.job;
  result_.samples.clear();
  result_.prompt_scores.clear();
  result_.tokens.clear();
  result_.scores.clear();
  result_.alternatives.clear();
  UpdateSampler(plan);
  ApplyMemoryEffects(plan);
  const model::ModelInput& input = builder_.Build(plan);
  step_status_ = input.sequences.empty() ? absl::OkStatus() : model_->Forward(input);
  if (step_status_.ok()) {
    ScorePrompts(plan);
    DrawSamples(plan);
  }
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
  const auto of = [](const auto& items, scheduler::Range range) {
    return std::span(items).subspan(range.begin, range.count);
  };
  const auto stop_ids = of(plan.tokens, opening.stop_token_ids);
  masked_tokens_.assign(stop_ids.begin(), stop_ids.end());
  if (!opening.sampling.ignore_eos) {
    masked_tokens_.insert(masked_tokens_.end(), eos_tokens_.begin(), eos_tokens_.end());
  }
  sampler_->Open(opening.slot,
                 {.params = opening.sampling,
                  .history = of(plan.tokens, opening.history),
                  .num_prompt_tokens = static_cast<std::int32_t>(opening.num_prompt_tokens),
                  .logit_bias = of(plan.logit_bias, opening.logit_bias),
                  .masked_below_min_tokens = masked_tokens_,
                  .allowed_words = of(plan.allowed_words, opening.allowed_words),
                  .bad_words = of(plan.tokens, opening.bad_words),
                  .logprob_token_ids = of(plan.tokens, opening.logprob_token_ids)});
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

void ModelExecutor::ScorePrompts(const StepPlan& plan) {
  score_tasks_.clear();
  for (const scheduler::ScoreRequest& request : plan.scores) {
    const auto tokens = std::span(plan.tokens).subspan(request.tokens.begin, request.tokens.count);
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
      score_tasks_.push_back(
          {.slot = request.slot,
           .token = tokens[i],
           .logits = model_->Logits(static_cast<std::int32_t>(request.first_row + i))});
    }
  }
  drawn_.resize(score_tasks_.size());
  sampler_->ScoreBatch(score_tasks_, drawn_, result_.alternatives);
  std::size_t next = 0;
  for (const scheduler::ScoreRequest& request : plan.scores) {
    scheduler::ScoreResult result{
        .slot = request.slot,
        .slot_generation = request.slot_generation,
        .first_position = request.first_position,
        .scores = {static_cast<std::uint32_t>(result_.scores.size()), request.tokens.count}};
    for (std::uint32_t i = 0; i < request.tokens.count; ++i) {
      result.finite &= drawn_[next].finite;
      result_.scores.push_back(drawn_[next++].score);
    }
    result_.prompt_scores.push_back(result);
  }
}

void ModelExecutor::DrawSamples(const StepPlan& plan) {
  tasks_.clear();
  for (const scheduler::SampleRequest& request : plan.samples) {
    PAGODA_CHECK(request.row < plan.rows.size());
    tasks_.push_back({.slot = request.slot,
                      .choice = request.choice,
                      .position = request.position,
                      .logits = model_->Logits(static_cast<std::int32_t>(request.row))});
  }
  drawn_.resize(tasks_.size());
  sampler_->SampleBatch(tasks_, drawn_, result_.alternatives);
  for (std::size_t i = 0; i < drawn_.size(); ++i) Report(plan.samples[i], drawn_[i]);
}

void ModelExecutor::Report(const scheduler::SampleRequest& request,
                           const model::SampledToken& drawn) {
  const auto begin = static_cast<std::uint32_t>(result_.tokens.size());
  const auto first_score = static_cast<std::uint32_t>(result_.scores.size());
  // A prompt with a broken row is broken as a whole.
  const bool is_whole =
      drawn.finite && std::ranges::none_of(result_.prompt_scores, [&](const auto& score) {
        return score.slot == request.slot && !score.finite;
      });
  const bool has_token = is_whole && !drawn.nothing_allowed;
  const bool has_score = has_token && drawn.score.rank > 0;
  result_.samples.push_back({.slot = request.slot,
                             .slot_generation = request.slot_generation,
                             .choice = request.choice,
                             .position = request.position,
                             .tokens = {.begin = begin, .count = has_token ? 1u : 0u},
                             .scores = {.begin = first_score, .count = has_score ? 1u : 0u},
                             .finite = is_whole});
  if (!has_token) return;
  result_.tokens.push_back(drawn.token);
  if (has_score) result_.scores.push_back(drawn.score);
  builder_.SetLastToken(request.slot, drawn.token);
}

}  // namespace pagoda::engine
