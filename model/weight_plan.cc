// Invariant: a tensor is claimed when it is placed and at no other time, so that what was never
// claimed is what would be ignored.

#include "model/weight_plan.h"

#include <algorithm>
#include <iterator>
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

// What a model of the family has, in the words of both worlds; those of a layer come after its
// prefix.
struct Names {
  std::string_view gguf;
  std::string_view transformers;
};
constexpr Names kEmbedding{"token_embd.weight", "model.embed_tokens.weight"};
constexpr Names kOutputNorm{"output_norm.weight", "model.norm.weight"};
constexpr Names kHead{"output.weight", "lm_head.weight"};
constexpr Names kAttentionNorm{"attn_norm.weight", "input_layernorm.weight"};
constexpr Names kFeedForwardNorm{"ffn_norm.weight", "post_attention_layernorm.weight"};
constexpr Names kQkv[] = {
    {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"}};
constexpr Names kAttentionOutput{"attn_output.weight", "self_attn.o_proj.weight"};
constexpr Names kGate{"ffn_gate.weight", "mlp.gate_proj.weight"};
constexpr Names kUp{"ffn_up.weight", "mlp.up_proj.weight"};
constexpr Names kDown{"ffn_down.weight", "mlp.down_proj.weight"};
constexpr std::string_view kFrequencies = "self_attn.rotary_emb.inv_freq";  // old folders
constexpr std::string_view kRopeFactors = "rope_freqs.weight";              // GGUF alone

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
    PAGODA_ASSIGN_OR_RETURN(plan_.output_norm, Vector(Whole(kOutputNorm), config_.hidden_size));
    PAGODA_RETURN_IF_ERROR(PlaceHead());
    if (IsGguf() && checkpoint_.Find(kRopeFactors) != nullptr) {
      PAGODA_ASSIGN_OR_RETURN(plan_.rope_factors,
                              Vector(std::string(kRopeFactors), config_.rotary_size / 2));
    }
    PAGODA_RETURN_IF_ERROR(RefuseStrays());
    NameFormat();
    return std::move(plan_);
  }

 private:
  bool IsGguf() const { return checkpoint_.naming() == TensorNaming::kGguf; }
  std::string Whole(const Names& names) const {
    return std::string(IsGguf() ? names.gguf : names.transformers);
  }
  std::string InLayer(std::int32_t layer, const Names& names, std::string_view suffix = "") const {
    return absl::StrCat(IsGguf() ? "blk." : "model.layers.", layer, ".", Whole(names),
                        ToAbsl(suffix));
  }

  absl::Status PlaceEmbedding() {
    const Wanted wanted{Whole(kEmbedding), config_.num_vocabulary_rows, config_.hidden_size};
    return Place({&wanted, 1}, WeightRole::kEmbedding, plan_.embedding);
  }

  absl::Status PlaceHead() {
    const bool has_own = checkpoint_.Find(Whole(kHead)) != nullptr;
    plan_.is_tied = config_.head == Config::Head::kEmbedding ||
                    (config_.head == Config::Head::kEither && !has_own);
    const Wanted wanted{Whole(plan_.is_tied ? kEmbedding : kHead), config_.num_vocabulary_rows,
                        config_.hidden_size};
    if (plan_.is_tied && has_own) {
      PAGODA_ASSIGN_OR_RETURN(plan_.head_twin, ClaimTwin());
    }
    return Place({&wanted, 1}, WeightRole::kLmHead, plan_.lm_head);
  }

  // A head that is there although the configuration ties it: it can only be the embedding again.
  absl::StatusOr<const StoredTensor*> ClaimTwin() {
    const StoredTensor& embedding = *plan_.embedding.parts.front();
    const std::int64_t counted = plan_.num_parameters;
    PAGODA_ASSIGN_OR_RETURN(const StoredTensor* const twin, Claim(Whole(kHead), embedding.shape));
    plan_.num_parameters = counted;
    if (twin->type_name == embedding.type_name) return twin;
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint_.path(), ": tensor '", ToAbsl(twin->name), "' is of type ",
                     twin->type_name, " and '", ToAbsl(embedding.name), "' of type ",
                     embedding.type_name, ", but the configuration says that they are one"));
  }

  absl::Status PlaceLayer(std::int32_t index) {
    PlannedLayer& layer = plan_.layers[static_cast<std::size_t>(index)];
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t query = std::int64_t{config_.num_heads} * config_.head_size;
    const std::int64_t wide = config_.feed_forward_size;
    PAGODA_ASSIGN_OR_RETURN(layer.attention_norm, Vector(InLayer(index, kAttentionNorm), hidden));
    PAGODA_ASSIGN_OR_RETURN(layer.feed_forward_norm,
                            Vector(InLayer(index, kFeedForwardNorm), hidden));
    PAGODA_RETURN_IF_ERROR(PlaceQkv(index, layer));
    PAGODA_RETURN_IF_ERROR(ClaimFrequencies(index));
    const Wanted output{InLayer(index, kAttentionOutput), hidden, query};
    PAGODA_RETURN_IF_ERROR(
        Place({&output, 1}, WeightRole::kAttentionOutput, layer.attention_output));
    const Wanted gate_up[] = {{InLayer(index, kGate), wide, hidden},
                              {InLayer(index, kUp), wide, hidden}};
    PAGODA_RETURN_IF_ERROR(Place(gate_up, WeightRole::kGateUp, layer.gate_up));
    const Wanted down{InLayer(index, kDown), hidden, wide};
    return Place({&down, 1}, WeightRole::kDown, layer.down);
  }

  absl::Status ClaimFrequencies(std::int32_t layer) {
    const std::string name = InLayer(layer, {kFrequencies, kFrequencies});
    if (IsGguf() || checkpoint_.Find(name) == nullptr) return absl::OkStatus();
    const std::int64_t counted = plan_.num_parameters;
    PAGODA_ASSIGN_OR_RETURN(const StoredTensor* const twin, Vector(name, config_.rotary_size / 2));
    plan_.num_parameters = counted;
    plan_.frequency_twins.push_back(twin);
    return absl::OkStatus();
  }

  absl::Status PlaceQkv(std::int32_t index, PlannedLayer& layer) {
    const std::int64_t query = std::int64_t{config_.num_heads} * config_.head_size;
    const std::int64_t key = std::int64_t{config_.num_kv_heads} * config_.head_size;
    const std::int64_t heights[] = {query, key, key};
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < std::size(kQkv); ++i) {
      wanted.push_back({InLayer(index, kQkv[i], ".weight"), heights[i], config_.hidden_size});
    }
    PAGODA_RETURN_IF_ERROR(Place(wanted, WeightRole::kQkv, layer.qkv));
    if (!config_.has_qkv_bias) return absl::OkStatus();
    for (std::size_t i = 0; i < std::size(kQkv); ++i) {
      PAGODA_ASSIGN_OR_RETURN(const StoredTensor* const bias,
                              Vector(InLayer(index, kQkv[i], ".bias"), heights[i]));
      layer.qkv_bias.push_back(bias);
    }
    return absl::OkStatus();
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

  absl::StatusOr<ElementType> TypeOf(const StoredTensor& tensor) const {
    auto type = ElementTypeOf(tensor);
    if (type.ok()) return type;
    return absl::Status(type.status().code(),
                        absl::StrCat(checkpoint_.path(), ": ", type.status().message()));
  }

  // A list of plain floats: norms, biases and rope factors are read as they are, never quantized.
  absl::StatusOr<const StoredTensor*> Vector(const std::string& name, std::int64_t size) {
    PAGODA_ASSIGN_OR_RETURN(const StoredTensor* const tensor,
                            Claim(name, {static_cast<std::uint64_t>(size)}));
    PAGODA_ASSIGN_OR_RETURN(const ElementType type, TypeOf(*tensor));
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
      PAGODA_ASSIGN_OR_RETURN(const ElementType type, TypeOf(*tensor));
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
      return absl::UnimplementedError(absl::StrCat(
          checkpoint_.path(), ": tensor '", ToAbsl(tensor.name),
          "' is not part of a model of the Llama family as built; leaving it out would change the "
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
