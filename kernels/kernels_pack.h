#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/tensor_view.h"

// The form in which weights reach kernels. Data only: no op, no device, so that a planner can know
// the bytes of any target.
namespace pagoda::kernels {

// What the rows of x are turned into before a product. With kInt8 wanted, float weights take f32.
enum class ActivationType : std::uint8_t {
  kF32,
  kInt8,  // per row and 32 elements: 32 signed bytes and an fp32 scale
  kBf16,  // of backends whose weights are bf16, whatever the file has
};

constexpr const char* Name(ActivationType type) {
  switch (type) {
    case ActivationType::kF32:
      return "f32";
    case ActivationType::kInt8:
      return "int8";
    case ActivationType::kBf16:
      return "bf16";
  }
  return "";
}

// The activation type that a weight of `format` runs with when `wanted` was asked for.
constexpr ActivationType ActivationFor(ElementType format, ActivationType wanted) {
  const bool any_format = wanted == ActivationType::kBf16;
  return any_format || IsQuantized(format) ? wanted : ActivationType::kF32;
}

// What a weight is for. Parts of one role are packed together, in this order.
enum class WeightRole : std::uint8_t {
  kEmbedding,        // one part
  kQkv,              // Q, K, V
  kAttentionOutput,  // one part
  kGateUp,           // gate, up
  kDown,             // one part
  kLmHead,           // one part
};

enum class PackLayout : std::uint8_t {
  kRows,          // the rows of the source as they are
  kColumnPanels,  // 32 outputs side by side, see kernels/README.md; the layout of the CPU
  kBf16Rows,      // the rows rounded to bf16, parts one after another without a gap; CUDA's
};

inline constexpr std::int64_t kPanelColumns = 32;

// Shape and format of one source tensor [N, K].
struct PartShape {
  ElementType format = ElementType::kF32;
  std::int64_t num_outputs = 0;  // N
  std::int64_t num_inputs = 0;   // K, the same in all parts; a multiple of 32 and of BlockColumns
};

// This process's share of a tensor-parallel group. Only {0, 1} is built.
struct Shard {
  std::int32_t index = 0;
  std::int32_t count = 1;
};

struct PackTarget {
  PackLayout layout = PackLayout::kRows;
  ActivationType activation = ActivationType::kF32;  // wanted; see ActivationFor
};

// Where one part lies.
struct PackedPart {
  ElementType format = ElementType::kF32;
  ActivationType activation = ActivationType::kF32;  // effective
  std::int64_t first_output = 0;                     // column of the product where this part begins
  std::int64_t num_outputs = 0;
  std::int64_t byte_offset = 0;  // a multiple of 64
  // Bytes of one row (kRows, kBf16Rows) or of one panel of 32 outputs over the whole K
  // (kColumnPanels). The last panel is padded with zero bytes.
  std::int64_t unit_bytes = 0;
};

struct PackPlan {
  WeightRole role = WeightRole::kEmbedding;
  PackLayout layout = PackLayout::kRows;
  std::int64_t num_outputs = 0;  // N, over all parts
  std::int64_t num_inputs = 0;   // K
  std::vector<PackedPart> parts;
  std::int64_t bytes = 0;
  // One part in rows: a contiguous source is already the packed form and may be used where it lies.
  bool is_identity = false;
};

// Pure. The embedding is laid out in rows, or bf16 rows, whatever the target. InvalidArgument for
// shapes that no kernel takes.
absl::StatusOr<PackPlan> PlanPack(std::span<const PartShape> parts, WeightRole role, Shard shard,
                                  PackTarget target);

// Fills out, all of it. Requires: the views are the parts of the plan; out.size() == plan.bytes.
// Any thread.
void Pack(const PackPlan& plan, std::span<const TensorView> views, std::span<std::byte> out);

// A weight as ops take it. A view: the bytes belong to the model. Aligned to 64, except where
// is_identity was used.
struct PackedWeight {
  PackPlan plan;
  const std::byte* data = nullptr;

  const std::byte* Part(std::size_t i) const { return data + plan.parts[i].byte_offset; }
};

}  // namespace pagoda::kernels
