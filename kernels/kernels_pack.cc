#include "kernels/kernels_pack.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"
#include "kernels/column_panels.h"
#include "kernels/dequantize.h"

namespace pagoda::kernels {
namespace {

// No real weight is near it; below it no byte count overflows.
constexpr std::int64_t kMaxSide = std::int64_t{1} << 28;
constexpr std::int64_t kPartAlignment = 64;

std::size_t NumParts(WeightRole role) {
  switch (role) {
    case WeightRole::kQkv:
      return 3;
    case WeightRole::kGateUp:
      return 2;
    case WeightRole::kEmbedding:
    case WeightRole::kAttentionOutput:
    case WeightRole::kDown:
    case WeightRole::kLmHead:
      return 1;
  }
  return 0;
}

absl::Status CheckPart(const PartShape& part, std::int64_t num_inputs) {
  if (part.num_outputs < 1 || part.num_outputs > kMaxSide) {
    return absl::InvalidArgumentError(absl::StrCat("packing a weight of ", part.num_outputs,
                                                   " outputs; expected 1 to ", kMaxSide));
  }
  // A row of any type is quantized activations in blocks of 32 for its neighbours in a product.
  const std::int64_t multiple = std::max(kQuantBlock, BlockColumns(part.format));
  if (part.num_inputs < multiple || part.num_inputs > kMaxSide || part.num_inputs % multiple != 0) {
    return absl::InvalidArgumentError(absl::StrCat("packing a weight of ", part.num_inputs,
                                                   " inputs in ", Name(part.format),
                                                   "; the kernels take multiples of ", multiple));
  }
  if (part.num_inputs != num_inputs) {
    return absl::InvalidArgumentError(absl::StrCat("packing weights of ", num_inputs, " and ",
                                                   part.num_inputs,
                                                   " inputs together; they must agree"));
  }
  return absl::OkStatus();
}

PackedPart PlacePart(const PartShape& shape, PackTarget target, const PackPlan& plan) {
  std::int64_t unit = 0;
  switch (target.layout) {
    case PackLayout::kRows:
      unit = RowBytes(shape.format, shape.num_inputs);
      break;
    case PackLayout::kColumnPanels:
      unit = PanelBytes(shape.format, shape.num_inputs);
      break;
    case PackLayout::kBf16Rows:
      // A multiple of 64 bytes, since K is one of 32: so parts follow each other without a gap.
      unit = RowBytes(ElementType::kBf16, shape.num_inputs);
      break;
  }
  return {.format = shape.format,
          .activation = ActivationFor(shape.format, target.activation),
          .first_output = plan.num_outputs,
          .num_outputs = shape.num_outputs,
          .byte_offset = base::RoundUp(plan.bytes, kPartAlignment),
          .unit_bytes = unit};
}

void PackRows(const PackedPart& part, const TensorView& view, std::byte* out) {
  for (std::int64_t n = 0; n < view.rows; ++n) {
    std::memcpy(out + n * part.unit_bytes, view.Row(n), static_cast<std::size_t>(part.unit_bytes));
  }
}

void PackBf16Rows(const PackedPart& part, const TensorView& view, std::byte* out) {
  std::vector<float> widened(static_cast<std::size_t>(view.columns));
  std::vector<std::uint16_t> rounded(widened.size());
  for (std::int64_t n = 0; n < view.rows; ++n) {
    DequantizeRow(view.type, view.Row(n), widened);
    std::transform(widened.begin(), widened.end(), rounded.begin(), base::Bf16FromFloat);
    std::memcpy(out + n * part.unit_bytes, rounded.data(),
                static_cast<std::size_t>(part.unit_bytes));
  }
}

}  // namespace

absl::StatusOr<PackPlan> PlanPack(std::span<const PartShape> parts, WeightRole role, Shard shard,
                                  PackTarget target) {
  if (parts.size() != NumParts(role)) {
    return absl::InvalidArgumentError(
        absl::StrCat("packing ", parts.size(), " parts for a role of ", NumParts(role)));
  }
  if (shard.index != 0 || shard.count != 1) {
    return absl::UnimplementedError(absl::StrCat("shard ", shard.index, " of ", shard.count,
                                                 "; tensor parallelism is not built yet"));
  }
  if (role == WeightRole::kEmbedding && target.layout == PackLayout::kColumnPanels) {
    target.layout = PackLayout::kRows;
  }
  PackPlan plan;
  plan.role = role;
  plan.layout = target.layout;
  plan.num_inputs = parts[0].num_inputs;
  for (const PartShape& shape : parts) {
    if (absl::Status status = CheckPart(shape, plan.num_inputs); !status.ok()) return status;
    const PackedPart part = PlacePart(shape, target, plan);
    const std::int64_t units = target.layout == PackLayout::kColumnPanels
                                   ? base::DivUp(part.num_outputs, kPanelColumns)
                                   : part.num_outputs;
    plan.bytes = part.byte_offset + units * part.unit_bytes;
    plan.num_outputs += part.num_outputs;
    plan.parts.push_back(part);
  }
  plan.is_identity = plan.layout == PackLayout::kRows && parts.size() == 1;
  return plan;
}

void Pack(const PackPlan& plan, std::span<const TensorView> views, std::span<std::byte> out) {
  PAGODA_CHECK(views.size() == plan.parts.size());
  PAGODA_CHECK(static_cast<std::int64_t>(out.size()) == plan.bytes);
  std::memset(out.data(), 0, out.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    const PackedPart& part = plan.parts[i];
    PAGODA_CHECK(views[i].type == part.format);
    PAGODA_CHECK(views[i].rows == part.num_outputs);
    PAGODA_CHECK(views[i].columns == plan.num_inputs);
    std::byte* target = out.data() + part.byte_offset;
    switch (plan.layout) {
      case PackLayout::kRows:
        PackRows(part, views[i], target);
        break;
      case PackLayout::kColumnPanels:
        PackColumnPanels(views[i], target);
        break;
      case PackLayout::kBf16Rows:
        PackBf16Rows(part, views[i], target);
        break;
    }
  }
}

}  // namespace pagoda::kernels
