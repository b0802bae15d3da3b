#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/kv_geometry.h"
#include "kernels/kernels_pack.h"
#include "model/checkpoint.h"
#include "model/memory_plan.h"
#include "model/weight_plan.h"

namespace pagoda::model {

// What an operator may choose about a model, in the words of the flags.
struct LoadOptions {
  std::string activation_dtype = "auto";  // auto, f32, bf16, int8
  std::string kv_cache_dtype = "auto";    // auto, bf16, f32
  std::int32_t block_size = 16;
  std::int32_t max_model_len = 0;  // 0: the model's own
};

// Everything about loading a file but the copying. The loader carries it out and a planner prints
// it, so that both come to the same bytes. Tensors belong to the
// checkpoint.
struct LoadPlan {
  Config config;
  WeightPlan weights;
  kernels::ActivationType activation = kernels::ActivationType::kF32;  // as asked of the backend
  std::string activation_dtype;                                        // as it will be
  base::KvGeometry kv_geometry;
  MemoryPlan memory;
};

// Pure. `layout` is the backend's. Errors: those of PlanWeights; InvalidArgument for
// a choice that the model does not allow, Unimplemented for one that is not built.
absl::StatusOr<LoadPlan> PlanLoad(const Checkpoint& checkpoint, const LoadOptions& options,
                                  kernels::PackLayout layout);

}  // namespace pagoda::model
