#pragma once

#include <memory>
#include <vector>

#include "engine/batch_builder.h"
#include "engine/executor.h"
#include "model/model.h"
#include "model/sampler.h"

namespace pagoda::engine {

struct ModelExecutorOptions {
  BatchLimits limits;
  std::vector<base::TokenId> eos_tokens;
};

// Runs steps on a model. On the CPU a step is done when Submit returns: memory effects in plan
// order, forward pass, one draw per sample; Await hands over what it gave. An error of the forward
// pass is reported by Await, because by then the step's rows and blocks have changed.
// Owner and thread: the engine thread. Nothing of its own allocates after construction.
class ModelExecutor final : public Executor {
 public:
  // `model` has its KV pool allocated.
  ModelExecutor(std::unique_ptr<model::Model> model, const ModelExecutorOptions& options);
  ~ModelExecutor() override;

  absl::Status Submit(const scheduler::StepPlan& plan) override;
  absl::StatusOr<const scheduler::StepResult*> Await() override;
  int max_in_flight() const override { return 1; }

 private:
  void UpdateSampler(const scheduler::StepPlan& plan);
  void OpenInSampler(const scheduler::StepPlan& plan, const scheduler::SlotOpening& opening);
  void ApplyMemoryEffects(const scheduler::StepPlan& plan);
  void ScorePrompts(const scheduler::StepPlan& plan);
  void DrawSamples(const scheduler::StepPlan& plan);
  void Report(const scheduler::SampleRequest& request, const model::SampledToken& drawn);

  const std::unique_ptr<model::Model> model_;
  const std::vector<base::TokenId> eos_tokens_;
  BatchBuilder builder_;
  const std::unique_ptr<model::Sampler> sampler_;
  std::vector<base::TokenId> masked_tokens_;   // scratch of OpenInSampler
  std::vector<model::SampleTask> tasks_;       // scratch of DrawSamples
  std::vector<model::ScoreTask> score_tasks_;  // scratch of ScorePrompts
  std::vector<model::SampledToken> drawn_;     // scratch of both

  bool has_step_ = false;  // submitted and not awaited
  absl::Status step_status_;
  scheduler::StepResult result_;
};

}  // namespace pagoda::engine
