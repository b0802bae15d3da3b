// Invariant: a tensor is claimed when it is placed and at no other time, so that what was never
// claimed is what would be ignored. GGUF has no flag for a tied head: a llama file without
// output.weight means the embedding.

#include "model/weight_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bits.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace pagoda::model {
namespace {

using base::ToAbsl;
using kernels::ElementType;
using kernels::WeightRole;

constexpr std::int64_t kWeightAlignment = 64;

// A matrix [outputs, inputs].
struct Wanted {
  std::string name;
  std::int64_t num_outputs = 0;
  std::int64_t num_inputs = 0;
};

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, kernels::PackTarget target)
      : checkpoint_(checkpoint), config_(checkpoint.config()), target_(target) {}

  absl::StatusOr<WeightPlan> Run() {
    PAGODA_RETURN_IF_ERROR(PlaceEmbedding());
    plan_.layers.resize(static_cast<std::size_t>(config_.num_layers));
    for (std::int32_t layer = 0; layer < config_.num_layers; ++layer) {
      PAGODA_RETURN_IF_ERROR(PlaceLayer(layer));
    }
    PAGODA_ASSIGN_OR_RETURN(plan_.output_norm, Vector("output_norm.weight", config_.hidden_size));
    PAGODA_RETURN_IF_ERROR(PlaceHead());
    if (checkpoint_.Find("rope_freqs.weight") != nullptr) {
      PAGODA_ASSIGN_OR_RETURN(plan_.rope_factors,
                              Vector("rope_freqs.weight", config_.rotary_size / 2));
    }
    PAGODA_RETURN_IF_ERROR(RefuseStrays());
    NameFormat();
    return std::move(plan_);
  }

 private:
  absl::Status PlaceEmbedding() {
    const Wanted wanted{"token_embd.weight", config_.num_vocabulary_rows, config_.hidden_size};
    return Place({&wanted, 1}, WeightRole::kEmbedding, plan_.embedding);
  }

  absl::Status PlaceHead() {
    plan_.is_tied = checkpoint_.Find("output.weight") == nullptr;
    const Wanted wanted{plan_.is_tied ? "token_embd.weight" : "output.weight",
                        config_.num_vocabulary_rows, config_.hidden_size};
    return Place({&wanted, 1}, WeightRole::kLmHead, plan_.lm_head);
  }

  absl::Status PlaceLayer(std::int32_t index) {
    PlannedLayer& layer = plan_.layers[static_cast<std::size_t>(index)];
    const std::string prefix = absl::StrCat("blk.", index, ".");
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t query = std::int64_t{config_.num_heads} * config_.head_size;
    const std::int64_t key = std::int64_t{config_.num_kv_heads} * config_.head_size;
    const std::int64_t wide = config_.feed_forward_size;
    PAGODA_ASSIGN_OR_RETURN(layer.attention_norm, Vector(prefix + "attn_norm.weight", hidden));
    PAGODA_ASSIGN_OR_RETURN(layer.feed_forward_norm, Vector(prefix + "ffn_norm.weight", hidden));
    const Wanted qkv[] = {{prefix + "attn_q.weight", query, hidden},
                          {prefix + "attn_k.weight", key, hidden},
                          {prefix + "attn_v.weight", key, hidden}};
    PAGODA_RETURN_IF_ERROR(Place(qkv, WeightRole::kQkv, layer.qkv));
    const Wanted output{prefix + "attn_output.weight", hidden, query};
    PAGODA_RETURN_IF_ERROR(
        Place({&output, 1}, WeightRole::kAttentionOutput, layer.attention_output));
    const Wanted gate_up[] = {{prefix + "ffn_gate.weight", wide, hidden},
                              {prefix + "ffn_up.weight", wide, hidden}};
    PAGODA_RETURN_IF_ERROR(Place(gate_up, WeightRole::kGateUp, layer.gate_up));
    const Wanted down{prefix + "ffn_down.weight", hidden, wide};
    return Place({&down, 1}, WeightRole::kDown, layer.down);
  }

  // The tensor of this name, once; its shape is as given.
  absl::StatusOr<const StoredTensor*> Claim(const std::string& name,
                                            const std::vector<std::uint64_t>& shape) {
    const StoredTensor* const tensor = checkpoint_.Find(name);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint_.path(), ": tensor '", name, "' is missing"));
    }
    if (tensor->shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          checkpoint_.path(), ": tensor '", name, "' has shape [",
          absl::StrJoin(tensor->shape, ", "), "]; expected [", absl::StrJoin(shape, ", "), "]"));
    }
    if (claimed_.insert(name).second) {
      std::int64_t values = 1;
      for (const std::uint64_t size : shape) values *= static_cast<std::int64_t>(size);
      plan_.num_parameters += values;
    }
    return tensor;
  }

  // A list of plain floats: norms and rope factors are read as they are, never quantized.
  absl::StatusOr<const StoredTensor*> Vector(const std::string& name, std::int64_t size) {
    PAGODA_ASSIGN_OR_RETURN(const StoredTensor* const tensor,
                            Claim(name, {static_cast<std::uint64_t>(size)}));
    PAGODA_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(*tensor));
    if (!kernels::IsQuantized(type)) return tensor;
    return absl::InvalidArgumentError(absl::StrCat(checkpoint_.path(), ": tensor '", name, "' is ",
                                                   kernels::Name(type), "; expected floats"));
  }

  absl::Status Place(std::span<const Wanted> wanted, WeightRole role, PlannedWeight& weight) {
    std::vector<kernels::PartShape> shapes;
    for (const Wanted& part : wanted) {
      PAGODA_ASSIGN_OR_RETURN(const StoredTensor* const tensor,
                              Claim(part.name, {static_cast<std::uint64_t>(part.num_outputs),
                                                static_cast<std::uint64_t>(part.num_inputs)}));
      PAGODA_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(*tensor));
      weight.parts.push_back(tensor);
      shapes.push_back({type, part.num_outputs, part.num_inputs});
      if (role == WeightRole::kEmbedding) continue;
      if (role != WeightRole::kLmHead) values_of_[type] += part.num_outputs * part.num_inputs;
      plan_.has_quantized = plan_.has_quantized || kernels::IsQuantized(type);
    }
    auto plan = kernels::PlanPack(shapes, role, kernels::Shard{}, target_);
    if (!plan.ok()) {
      return absl::Status(plan.status().code(),
                          absl::StrCat(checkpoint_.path(), ": tensor '", wanted.front().name,
                                       "': ", plan.status().message()));
    }
    weight.plan = *std::move(plan);
    const bool is_second_use = role == WeightRole::kLmHead && plan_.is_tied;
    if (weight.in_place()) {
      if (!is_second_use || !plan_.embedding.in_place()) plan_.mapped_bytes += weight.plan.bytes;
      return absl::OkStatus();
    }
    weight.byte_offset = base::RoundUp(plan_.packed_bytes, kWeightAlignment);
    plan_.packed_bytes = weight.byte_offset + weight.plan.bytes;
    return absl::OkStatus();
  }

  absl::Status RefuseStrays() const {
    for (const StoredTensor& tensor : checkpoint_.tensors()) {
      if (claimed_.contains(std::string(tensor.name))) continue;
      return absl::UnimplementedError(
          absl::StrCat(checkpoint_.path(), ": tensor '", ToAbsl(tensor.name),
                       "' is not part of a Llama model as built; leaving it out would change the "
                       "mathematics"));
    }
    return absl::OkStatus();
  }

  void NameFormat() {
    const auto most =
        std::max_element(values_of_.begin(), values_of_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    plan_.weight_format = kernels::Name(most->first);
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  const kernels::PackTarget target_;
  WeightPlan plan_;
  std::set<std::string> claimed_;
  std::map<ElementType, std::int64_t> values_of_;
};

}  // namespace

absl::StatusOr<WeightPlan> PlanWeights(const Checkpoint& checkpoint, kernels::PackTarget target) {
  return Planner(checkpoint, target).Run();
}

}  // namespace pagoda::model
