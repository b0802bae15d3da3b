#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernels_pack.h"
#include "model/checkpoint.h"

namespace pagoda::model {

// One packed weight: its source tensors and where it will lie. Tensors belong to the
// checkpoint.
struct PlannedWeight {
  kernels::PackPlan plan;
  std::vector<const StoredTensor*> parts;
  std::int64_t byte_offset = 0;  // in the memory of all weights; meaningless when used in place

  // The file's own bytes are already the packed form and are used where they lie.
  bool in_place() const { return plan.is_identity; }
};

struct PlannedLayer {
  const StoredTensor* attention_norm = nullptr;
  const StoredTensor* feed_forward_norm = nullptr;
  PlannedWeight qkv, attention_output, gate_up, down;
  std::vector<const StoredTensor*> qkv_bias;  // of Q, K, V; empty: the model has none
};

// Which tensor of a file goes where, and the bytes that takes: everything about loading but the
// copying.
struct WeightPlan {
  PlannedWeight embedding;
  std::vector<PlannedLayer> layers;
  const StoredTensor* output_norm = nullptr;
  const StoredTensor* rope_factors = nullptr;  // null: the file has none
  PlannedWeight lm_head;
  bool is_tied = false;  // the head is the embedding
  // A tensor that the configuration says is the embedding once more; null: the files have none. Its
  // bytes must be compared before anything is served.
  const StoredTensor* head_twin = nullptr;
  // Tables of rotary frequencies that older folders carry; they must be those of the configuration.
  std::vector<const StoredTensor*> frequency_twins;
  std::int64_t packed_bytes = 0;    // to allocate
  std::int64_t mapped_bytes = 0;    // used in place
  std::int64_t num_parameters = 0;  // a tied head counts once
  std::string weight_format;        // the type that most parameters of the layers have
  bool has_quantized = false;       // any matrix of the layers or the head
};

// Pure; needs no kernel. Closed world: every tensor of the model is there once with the shape that
// the configuration asks for, and the file has no other. Errors: InvalidArgument naming the tensor,
// what it has and what is expected.
absl::StatusOr<WeightPlan> PlanWeights(const Checkpoint& checkpoint, kernels::PackTarget target);

}  // namespace pagoda::model
