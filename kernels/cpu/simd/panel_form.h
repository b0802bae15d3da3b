#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/lanes.h"
#include "kernels/tensor_view.h"

// Where the numbers of one block of 32 inputs and 32 outputs stand in a panel of a quantized format
// (kernels/README.md part 4), and what scales them. Plain data and arithmetic, any thread.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {

inline constexpr int kHalfBytes = 2;
// Planes of 32 outputs.
inline constexpr int kHalfPlane = 32 * kHalfBytes;
inline constexpr int kBytePlane = 32;
inline constexpr int kWordPlane = 32 * 4;
inline constexpr int kNibbleBytes = 4 * kWordPlane;

struct PanelForm {
  int bits = 0;        // of an element: 4, 5, 6 or 8
  int num_blocks = 1;  // of 32 inputs that share the f16 numbers; 8 in the K types
  bool has_minimum = false;
  int offset = 0;              // the stored number that stands for zero
  bool scaled_halves = false;  // each 16 inputs of a block have a scale, a byte

  constexpr int shared_bytes() const { return has_minimum ? 2 * kHalfPlane : kHalfPlane; }
  constexpr int scale_bytes() const { return num_blocks > 1 ? 2 * kBytePlane : 0; }
  constexpr int block_bytes() const { return scale_bytes() + bits * kWordPlane; }
  constexpr int unit_bytes() const { return shared_bytes() + num_blocks * block_bytes(); }
};

constexpr PanelForm FormOf(ElementType format) {
  switch (format) {
    case ElementType::kQ4_0:
      return {.bits = 4, .offset = 8};
    case ElementType::kQ4_1:
      return {.bits = 4, .has_minimum = true};
    case ElementType::kQ5_0:
      return {.bits = 5, .offset = 16};
    case ElementType::kQ5_1:
      return {.bits = 5, .has_minimum = true};
    case ElementType::kQ4_K:
      return {.bits = 4, .num_blocks = 8, .has_minimum = true};
    case ElementType::kQ5_K:
      return {.bits = 5, .num_blocks = 8, .has_minimum = true};
    case ElementType::kQ6_K:
      return {.bits = 6, .num_blocks = 8, .offset = 32, .scaled_halves = true};
    default:
      return {.bits = 8};
  }
}

// One block in a panel: its f16 planes, its planes of byte scales where it has them, its elements.
struct PanelBlock {
  const std::byte* halves;
  const std::byte* scales;
  const std::byte* elements;
};

template <ElementType kFormat>
inline PanelBlock BlockOf(const std::byte* panel, std::int64_t index) {
  constexpr PanelForm kForm = FormOf(kFormat);
  const std::byte* unit = panel + index / kForm.num_blocks * kForm.unit_bytes();
  const std::byte* own =
      unit + kForm.shared_bytes() + index % kForm.num_blocks * kForm.block_bytes();
  return {unit, own, own + kForm.scale_bytes()};
}

// What multiplies the integers of the outputs from `column` on: d, or d * scale, exact. Scales of
// halves are not in it.
template <ElementType kFormat>
inline Float ScaleOf(const PanelBlock& block, int column) {
  constexpr PanelForm kForm = FormOf(kFormat);
  const Float d = LoadHalf(block.halves + column * kHalfBytes);
  if constexpr (kForm.num_blocks == 1 || kForm.scaled_halves) return d;
  return d * ToFloat(LoadBytes(block.scales + column));
}

// What is added to each element: m, or -(m * scale), exact.
template <ElementType kFormat>
inline Float MinimumOf(const PanelBlock& block, int column) {
  const Float m = LoadHalf(block.halves + kHalfPlane + column * kHalfBytes);
  if constexpr (FormOf(kFormat).num_blocks == 1) return m;
  return Negate(m * ToFloat(LoadBytes(block.scales + kBytePlane + column)));
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
