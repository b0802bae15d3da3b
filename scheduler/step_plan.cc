#include "scheduler/step_plan.h"

namespace pagoda::scheduler {

void StepPlan::Clear() {
  job = base::kNoJob;
  closed.clear();
  opened.clear();
  work.clear();
  rows.clear();
  samples.clear();
  scores.clear();
  block_appends.clear();
  zeros.clear();
  copies.clear();
  memory_effects.clear();
  plan_tokens.clear();
  tokens.clear();
  logit_bias.clear();
  allowed_words.clear();
}

}  // namespace pagoda::scheduler
