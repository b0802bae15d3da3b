#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/weight_plan.h"

// What a load refuses that headers do not show: for the loader, and for whoever asks beforehand.
// Pure; threads: any. Errors (InvalidArgument) name the tensor and what is wrong with it.
namespace pagoda::model {

// A tensor of one dimension, widened; all of it finite. Requires: its type was found to be built
// when it was planned.
absl::StatusOr<std::vector<float>> ReadVector(const StoredTensor& tensor);

// Reads the bytes of what must be compared or stays in fp32: the embedding's twin, tables of rotary
// frequencies and factors, norms and biases. The matrices of the layers are not touched.
absl::Status CheckContent(const WeightPlan& plan, const Config& config);

// A tokenizer must not have more tokens than the embedding has rows.
absl::Status CheckVocabulary(std::uint32_t vocabulary_size, const Config& config);

}  // namespace pagoda::model
