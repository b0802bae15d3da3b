#include "model/load_plan.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/kv_support.h"

namespace pagoda::model {
namespace {

absl::StatusOr<kernels::ActivationType> ParseActivation(const std::string& name,
                                                        kernels::PackLayout layout) {
  if (layout == kernels::PackLayout::kBf16Rows) {
    if (name == "auto" || name == "bf16") return kernels::ActivationType::kBf16;
    return absl::InvalidArgumentError(
        absl::StrCat("activation-dtype is '", name, "'; this backend has auto or bf16"));
  }
  // auto is int8: weights that are not quantized run with f32 whatever was wanted.
  if (name == "auto" || name == "int8") return kernels::ActivationType::kInt8;
  if (name == "f32") return kernels::ActivationType::kF32;
  if (name == "bf16") {
    return absl::UnimplementedError(
        "activation-dtype is 'bf16', which is not built for this backend; use auto, f32 or int8");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("activation-dtype is '", name, "'; expected auto, f32 or int8"));
}

absl::StatusOr<base::KvType> ParseKvType(const std::string& name, kernels::PackLayout layout) {
  if (name == "auto" || name == "bf16") return base::KvType::kBf16;
  if (name == "f32" && layout == kernels::PackLayout::kBf16Rows) {
    return absl::InvalidArgumentError("the cuda backend has no KV type f32; it has bf16");
  }
  if (name == "f32") return base::KvType::kF32;
  return absl::InvalidArgumentError(
      absl::StrCat("kv-cache-dtype is '", name, "'; expected auto, bf16 or f32"));
}

absl::StatusOr<std::int32_t> MaxModelLen(const LoadOptions& options, const Config& config) {
  if (options.max_model_len == 0) return config.context_length;
  if (options.max_model_len >= 1 && options.max_model_len <= config.context_length) {
    return options.max_model_len;
  }
  return absl::InvalidArgumentError(absl::StrCat("max-model-len is ", options.max_model_len,
                                                 "; the model was made for 1 to ",
                                                 config.context_length));
}

}  // namespace

absl::StatusOr<LoadPlan> PlanLoad(const Checkpoint& checkpoint, const LoadOptions& options,
                                  kernels::PackLayout layout) {
  LoadPlan plan;
  plan.config = checkpoint.config();
  PAGODA_ASSIGN_OR_RETURN(plan.activation, ParseActivation(options.activation_dtype, layout));
  PAGODA_ASSIGN_OR_RETURN(const base::KvType kv_type, ParseKvType(options.kv_cache_dtype, layout));
  PAGODA_ASSIGN_OR_RETURN(const std::int32_t max_model_len, MaxModelLen(options, plan.config));
  PAGODA_ASSIGN_OR_RETURN(
      plan.weights, PlanWeights(checkpoint, {.layout = layout, .activation = plan.activation}));
  if (options.activation_dtype == "int8" && !plan.weights.has_quantized) {
    return absl::InvalidArgumentError(
        absl::StrCat("activation-dtype is 'int8', which needs quantized weights; these are ",
                     plan.weights.weight_format, "; use auto or f32"));
  }
  plan.activation_dtype = kernels::Name(kernels::ActivationFor(
      plan.weights.has_quantized ? kernels::ElementType::kQ8_0 : kernels::ElementType::kF32,
      plan.activation));
  plan.kv_geometry = {.groups = {plan.config.KvGroupFor(kv_type)},
                      .block_size = options.block_size};
  PAGODA_RETURN_IF_ERROR(kernels::CheckGeometry(kernels::KvSupportOf(layout), plan.kv_geometry));
  plan.memory = PlanMemory(plan.kv_geometry, plan.weights.packed_bytes + plan.weights.mapped_bytes,
                           max_model_len);
  return plan;
}

}  // namespace pagoda::model
