#include "model/weights.h"

#include <bit>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "model/load_checks.h"

namespace pagoda::model {
namespace {

using kernels::ElementType;
using kernels::TensorView;

// Requires: the type was found to be built when the tensor was planned.
ElementType TypeOf(const StoredTensor& tensor) {
  const auto type = ElementTypeOf(tensor);
  PAGODA_CHECK(type.ok());
  return *type;
}

class Loader {
 public:
  Loader(const WeightPlan& plan, const Config& config, kernels::Ops& ops,
         kernels::ActivationType activation, const std::function<bool()>& stop_asked)
      : plan_(plan), config_(config), ops_(ops), activation_(activation), stop_asked_(stop_asked) {}

  absl::StatusOr<Weights> Run() {
    PAGODA_CHECK_MSG(ops_.device().is_host(), "weights are packed in host memory");
    PAGODA_RETURN_IF_ERROR(CheckContent(plan_, config_));
    if (plan_.packed_bytes > 0) {
      PAGODA_ASSIGN_OR_RETURN(weights_.memory, ops_.device().Allocate(plan_.packed_bytes));
    }
    PAGODA_RETURN_IF_ERROR(Load(plan_.embedding, weights_.embedding));
    for (const PlannedLayer& planned : plan_.layers) {
      LayerWeights layer;
      PAGODA_ASSIGN_OR_RETURN(layer.attention_norm, ReadVector(*planned.attention_norm));
      PAGODA_ASSIGN_OR_RETURN(layer.feed_forward_norm, ReadVector(*planned.feed_forward_norm));
      for (const StoredTensor* const bias : planned.qkv_bias) {
        PAGODA_ASSIGN_OR_RETURN(const std::vector<float> values, ReadVector(*bias));
        layer.qkv_bias.insert(layer.qkv_bias.end(), values.begin(), values.end());
      }
      PAGODA_RETURN_IF_ERROR(Load(planned.qkv, layer.qkv));
      PAGODA_RETURN_IF_ERROR(Load(planned.attention_output, layer.attention_output));
      PAGODA_RETURN_IF_ERROR(Load(planned.gate_up, layer.gate_up));
      PAGODA_RETURN_IF_ERROR(Load(planned.down, layer.down));
      weights_.layers.push_back(std::move(layer));
    }
    PAGODA_ASSIGN_OR_RETURN(weights_.output_norm, ReadVector(*plan_.output_norm));
    PAGODA_RETURN_IF_ERROR(Load(plan_.lm_head, weights_.lm_head));
    if (plan_.rope_factors != nullptr) {
      PAGODA_ASSIGN_OR_RETURN(weights_.rope_factors, ReadVector(*plan_.rope_factors));
    }
    return std::move(weights_);
  }

 private:
  // The backend widens any embedding; what it multiplies with must be one of its formats.
  absl::Status CheckFormats(const PlannedWeight& planned) const {
    if (planned.plan.role == kernels::WeightRole::kEmbedding) return absl::OkStatus();
    for (const StoredTensor* const tensor : planned.parts) {
      PAGODA_RETURN_IF_ERROR(
          kernels::CheckWeight(ops_.capabilities(), tensor->name, TypeOf(*tensor), activation_));
    }
    return absl::OkStatus();
  }

  absl::Status Load(const PlannedWeight& planned, kernels::PackedWeight& weight) {
    if (stop_asked_ && stop_asked_()) return absl::CancelledError("the load was stopped");
    PAGODA_RETURN_IF_ERROR(CheckFormats(planned));
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < planned.parts.size(); ++i) {
      const StoredTensor& tensor = *planned.parts[i];
      views.push_back(TensorView::Contiguous(tensor.data.data(), TypeOf(tensor),
                                             planned.plan.parts[i].num_outputs,
                                             planned.plan.num_inputs));
    }
    weight.plan = planned.plan;
    weight.data = planned.in_place() ? views[0].data : Packed(planned, views);
    return absl::OkStatus();
  }

  const std::byte* Packed(const PlannedWeight& planned, std::span<const TensorView> views) {
    std::byte* const target = weights_.memory.data() + planned.byte_offset;
    kernels::Pack(planned.plan, views,
                  std::span(target, static_cast<std::size_t>(planned.plan.bytes)));
    return target;
  }

  const WeightPlan& plan_;
  const Config& config_;
  kernels::Ops& ops_;
  const kernels::ActivationType activation_;
  const std::function<bool()>& stop_asked_;
  Weights weights_;
};

}  // namespace

absl::StatusOr<Weights> LoadWeights(const WeightPlan& plan, const Config& config, kernels::Ops& ops,
                                    kernels::ActivationType activation,
                                    const std::function<bool()>& stop_asked) {
  return Loader(plan, config, ops, activation, stop_asked).Run();
}

base::Digest256 ModelDigest(const Checkpoint& checkpoint, const Config& config) {
  enum Tag : std::uint8_t { kVersion, kSize, kReal, kName, kType, kShape, kData };
  base::KeyedHasher hasher(base::Digest256{});
  hasher.AddField(kVersion, "pagoda model 1");
  for (const std::int32_t size :
       {config.num_layers, config.hidden_size, config.feed_forward_size, config.num_heads,
        config.num_kv_heads, config.head_size, config.rotary_size,
        static_cast<std::int32_t>(config.rotary_pairs)}) {
    hasher.AddField(kSize, static_cast<std::uint64_t>(size));
  }
  const Config::Llama3Scaling scaling = config.llama3_scaling.value_or(Config::Llama3Scaling{});
  for (const double real :
       {static_cast<double>(config.rms_epsilon), config.rope_base, config.rope_position_scale,
        scaling.factor, scaling.low_frequency_factor, scaling.high_frequency_factor,
        static_cast<double>(scaling.original_context)}) {
    hasher.AddField(kReal, std::bit_cast<std::uint64_t>(real));
  }
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    hasher.AddField(kName, tensor.name);
    hasher.AddField(kType, tensor.type_name);
    for (const std::uint64_t size : tensor.shape) hasher.AddField(kShape, size);
    hasher.AddField(kData, std::span(reinterpret_cast<const std::uint8_t*>(tensor.data.data()),
                                     tensor.data.size()));
  }
  return hasher.Finish();
}

}  // namespace pagoda::model
