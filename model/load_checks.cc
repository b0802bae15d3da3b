#include "model/load_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "kernels/dequantize.h"

namespace pagoda::model {
namespace {

using kernels::ElementType;

// Requires: the type was found to be built when the tensor was planned.
ElementType TypeOf(const StoredTensor& tensor) {
  const auto type = ElementTypeOf(tensor);
  PAGODA_CHECK(type.ok());
  return *type;
}

absl::Status CompareTwin(const WeightPlan& plan) {
  if (plan.head_twin == nullptr) return absl::OkStatus();
  const StoredTensor& embedding = *plan.embedding.parts.front();
  if (std::ranges::equal(plan.head_twin->data, embedding.data)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor '", base::ToAbsl(plan.head_twin->name), "' differs from '",
      base::ToAbsl(embedding.name), "', but the configuration says that they are one"));
}

absl::Status CompareFrequencies(const WeightPlan& plan, const Config& config) {
  for (const StoredTensor* const twin : plan.frequency_twins) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> stated, ReadVector(*twin));
    // A file of 16-bit floats has rounded them.
    const double allowed = TypeOf(*twin) == ElementType::kF32 ? 1e-5 : 1e-2;
    for (std::size_t i = 0; i < stated.size(); ++i) {
      const double expected =
          std::pow(config.rope_base, -2.0 * static_cast<double>(i) / config.rotary_size);
      if (std::abs(stated[i] - expected) <= allowed * expected) continue;
      return absl::InvalidArgumentError(absl::StrCat("tensor '", base::ToAbsl(twin->name),
                                                     "' holds ", stated[i], " at ", i,
                                                     "; the configuration gives ", expected));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRopeFactors(const WeightPlan& plan) {
  if (plan.rope_factors == nullptr) return absl::OkStatus();
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> factors, ReadVector(*plan.rope_factors));
  for (const float factor : factors) {
    if (factor > 0.0f) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor 'rope_freqs.weight' holds ", factor, "; expected values above 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<float>> ReadVector(const StoredTensor& tensor) {
  std::vector<float> values(tensor.shape[0]);
  kernels::DequantizeRow(TypeOf(tensor), tensor.data.data(), values);
  for (const float value : values) {
    if (std::isfinite(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", base::ToAbsl(tensor.name), "' holds a value that is not finite"));
  }
  return values;
}

absl::Status CheckContent(const WeightPlan& plan, const Config& config) {
  PAGODA_RETURN_IF_ERROR(CompareTwin(plan));
  PAGODA_RETURN_IF_ERROR(CompareFrequencies(plan, config));
  PAGODA_RETURN_IF_ERROR(CheckRopeFactors(plan));
  for (const PlannedLayer& layer : plan.layers) {
    std::vector<const StoredTensor*> vectors = layer.qkv_bias;
    vectors.push_back(layer.attention_norm);
    vectors.push_back(layer.feed_forward_norm);
    for (const StoredTensor* const vector : vectors) {
      PAGODA_RETURN_IF_ERROR(ReadVector(*vector).status());
    }
  }
  return ReadVector(*plan.output_norm).status();
}

absl::Status CheckVocabulary(std::uint32_t vocabulary_size, const Config& config) {
  const auto num_rows = static_cast<std::uint32_t>(config.num_vocabulary_rows);
  if (vocabulary_size <= num_rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a tokenizer of ", vocabulary_size, " tokens for a model of ", num_rows, " embedding rows"));
}

}  // namespace pagoda::model
