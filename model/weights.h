#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/keyed_hash.h"
#include "kernels/ops.h"
#include "model/weight_plan.h"

namespace pagoda::model {

struct LayerWeights {
  std::vector<float> attention_norm;     // [hidden]
  std::vector<float> feed_forward_norm;  // [hidden]
  std::vector<float> qkv_bias;           // [(H + 2 G) D], or empty
  kernels::PackedWeight qkv, attention_output, gate_up, down;
};

// The weights of a model in the form its backend takes. Owner: the model; some point into the file,
// which must outlive this, as must the backend. Threads: const after LoadWeights, any.
struct Weights {
  kernels::DeviceMemory memory;
  kernels::PackedWeight embedding;
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;   // [hidden]
  std::vector<float> rope_factors;  // [rotary / 2], or empty
  kernels::PackedWeight lm_head;
};

// Checks every format against the backend, by name, then packs. Errors: InvalidArgument,
// ResourceExhausted (bytes asked for), Cancelled when `stop_asked`, asked before each tensor, says
// so.
absl::StatusOr<Weights> LoadWeights(const WeightPlan& plan, const Config& config, kernels::Ops& ops,
                                    kernels::ActivationType activation,
                                    const std::function<bool()>& stop_asked = {});

// Identity of the mathematics of a model: its configuration and every tensor. Two models with equal
// digests give equal KV. Reads every byte.
base::Digest256 ModelDigest(const Checkpoint& checkpoint, const Config& config);

}  // namespace pagoda::model
