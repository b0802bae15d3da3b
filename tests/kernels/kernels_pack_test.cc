#include "kernels/kernels_pack.h"

#include <cstdint>
#include <vector>

#include "base/bits.h"
#include "gtest/gtest.h"

namespace pagoda::kernels {
namespace {

constexpr PackTarget kRowsF32 = {PackLayout::kRows, ActivationType::kF32};
constexpr PackTarget kPanelsInt8 = {PackLayout::kColumnPanels, ActivationType::kInt8};

std::vector<std::byte> Counting(std::int64_t size) {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(i * 7 + i / 251));
  return bytes;
}

TEST(KernelsPack, APlanSaysBytesAndPlacesWithoutData) {
  const PartShape qkv[] = {{ElementType::kQ4_1, 576, 576},
                           {ElementType::kQ4_1, 192, 576},
                           {ElementType::kQ8_0, 190, 576}};
  const auto plan = PlanPack(qkv, WeightRole::kQkv, {}, kPanelsInt8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_outputs, 958);
  EXPECT_EQ(plan->num_inputs, 576);
  EXPECT_EQ(plan->parts[1].first_output, 576);
  EXPECT_EQ(plan->parts[2].first_output, 768);
  EXPECT_EQ(plan->parts[1].byte_offset, 576 * 18 * 20);
  EXPECT_EQ(plan->parts[2].unit_bytes, 32 * 18 * 34);
  // 190 outputs are padded to 192.
  EXPECT_EQ(plan->bytes, 768 * 18 * 20 + 192 * 18 * 34);
  EXPECT_FALSE(plan->is_identity);
}

TEST(KernelsPack, KTypesWidenTheirSixBitScalesInPanelsAndNotInRows) {
  const PartShape parts[] = {{ElementType::kQ4_K, 64, 512}, {ElementType::kQ6_K, 32, 512}};
  const auto panels = PlanPack(parts, WeightRole::kGateUp, {}, kPanelsInt8);
  ASSERT_TRUE(panels.ok()) << panels.status();
  EXPECT_EQ(panels->bytes, 64 * 2 * 148 + 32 * 2 * 210);
  const auto rows = PlanPack(parts, WeightRole::kGateUp, {}, kRowsF32);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->bytes, 64 * 2 * 144 + 32 * 2 * 210);
}

TEST(KernelsPack, FloatWeightsKeepF32ActivationsBesideQuantizedOnes) {
  const PartShape parts[] = {{ElementType::kBf16, 64, 64}, {ElementType::kQ4_0, 64, 64}};
  const auto plan = PlanPack(parts, WeightRole::kGateUp, {}, kPanelsInt8);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->parts[0].activation, ActivationType::kF32);
  EXPECT_EQ(plan->parts[1].activation, ActivationType::kInt8);
}

TEST(KernelsPack, Bf16RowsAreRoundedWhateverTheFormatAndNeverUsedInPlace) {
  constexpr PackTarget kTarget = {PackLayout::kBf16Rows, ActivationType::kBf16};
  std::vector<float> values(2 * 32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i) * 0.003f;
  std::vector<std::uint16_t> halves(32, 0x3f81);
  const PartShape shapes[] = {{ElementType::kF32, 2, 32}, {ElementType::kBf16, 1, 32}};
  const auto plan = PlanPack(shapes, WeightRole::kGateUp, {}, kTarget);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->bytes, 3 * 64);
  EXPECT_EQ(plan->parts[0].activation, ActivationType::kBf16);
  EXPECT_EQ(plan->parts[1].byte_offset, 2 * 64);
  std::vector<std::byte> packed(static_cast<std::size_t>(plan->bytes));
  const TensorView views[] = {
      TensorView::Contiguous(reinterpret_cast<const std::byte*>(values.data()), ElementType::kF32,
                             2, 32),
      TensorView::Contiguous(reinterpret_cast<const std::byte*>(halves.data()), ElementType::kBf16,
                             1, 32)};
  Pack(*plan, views, packed);
  const auto* const found = reinterpret_cast<const std::uint16_t*>(packed.data());
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(found[i], base::Bf16FromFloat(values[i]));
  for (std::size_t i = 64; i < 96; ++i) ASSERT_EQ(found[i], 0x3f81);
  const auto embedding =
      PlanPack(std::span(shapes).subspan(1), WeightRole::kEmbedding, {}, kTarget);
  ASSERT_TRUE(embedding.ok());
  EXPECT_EQ(embedding->layout, PackLayout::kBf16Rows);
  EXPECT_FALSE(embedding->is_identity);
}

TEST(KernelsPack, TheEmbeddingStaysInRowsWhateverTheTarget) {
  const PartShape part[] = {{ElementType::kQ8_0, 100, 64}};
  const auto plan = PlanPack(part, WeightRole::kEmbedding, {}, kPanelsInt8);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->layout, PackLayout::kRows);
  EXPECT_TRUE(plan->is_identity);
  EXPECT_EQ(plan->bytes, 6800);
}

TEST(KernelsPack, ShapesThatNoKernelTakesAreRefusedWithTheNumbers) {
  const auto refused = [](PartShape part) {
    return PlanPack({&part, 1}, WeightRole::kDown, {}, kRowsF32).status();
  };
  EXPECT_EQ(refused({ElementType::kF32, 0, 64}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused({ElementType::kF32, 8, 65}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused({ElementType::kF32, 8, 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused({ElementType::kF32, INT64_MAX, 64}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused({ElementType::kF32, 8, 65}).ToString().find("65 inputs"), std::string::npos);
  EXPECT_NE(refused({ElementType::kQ6_K, 8, 576})
                .ToString()
                .find("576 inputs in Q6_K; the kernels take multiples of 256"),
            std::string::npos);
  const PartShape unequal[] = {{ElementType::kF32, 8, 64}, {ElementType::kF32, 8, 32}};
  EXPECT_FALSE(PlanPack(unequal, WeightRole::kGateUp, {}, kRowsF32).ok());
  EXPECT_FALSE(PlanPack(unequal, WeightRole::kQkv, {}, kRowsF32).ok());
  EXPECT_EQ(PlanPack({unequal, 1}, WeightRole::kDown, {0, 2}, kRowsF32).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(KernelsPack, RowsAreCopiedFromStridedViewsOnePartAfterAnother) {
  const auto gate = Counting(3 * 150);
  const auto up = Counting(2 * 128);
  const TensorView views[] = {{gate.data(), ElementType::kF32, 3, 32, 150},
                              {up.data(), ElementType::kF32, 2, 32, 128}};
  const PartShape shapes[] = {{ElementType::kF32, 3, 32}, {ElementType::kF32, 2, 32}};
  const auto plan = PlanPack(shapes, WeightRole::kGateUp, {}, kRowsF32);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->parts[1].byte_offset % 64, 0);
  std::vector<std::byte> out(static_cast<std::size_t>(plan->bytes), std::byte{0xee});
  Pack(*plan, views, out);
  for (std::size_t i = 0; i < 128; ++i) {
    EXPECT_EQ(out[128 + i], gate[150 + i]);
    EXPECT_EQ(out[static_cast<std::size_t>(plan->parts[1].byte_offset) + i], up[i]);
  }
}

TEST(KernelsPackDeathTest, ABufferOfTheWrongSizeAborts) {
  const auto bytes = Counting(128);
  const TensorView view[] = {TensorView::Contiguous(bytes.data(), ElementType::kF32, 1, 32)};
  const PartShape shape[] = {{ElementType::kF32, 1, 32}};
  const auto plan = PlanPack(shape, WeightRole::kDown, {}, kRowsF32);
  std::vector<std::byte> out(127);
  EXPECT_DEATH(Pack(*plan, view, out), "plan.bytes");
}

}  // namespace
}  // namespace pagoda::kernels
