#include "base/bits.h"
#include "base/exact_math.h"
#include "kernels/cpu/block_moves.h"
#include "tests/kernels/cpu/cpu_fixture.h"

// Row operations and block moves, against plain loops in the order of kernels/README.md.
namespace pagoda::kernels::cpu {
namespace {

class RowsTest : public CpuOpsTest {
 protected:
  std::mt19937 random_{20261129};
};

TEST_P(RowsTest, ExpEqualsTheScalarOneOnEveryKindOfFloat) {
  std::vector<float> in;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4'093) {
    in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const float edge : {-87.336544f, 88.72283f, 0.0f, -0.0f}) {
    for (const float near : {std::nextafter(edge, -200.0f), edge, std::nextafter(edge, 200.0f)}) {
      in.push_back(near);
    }
  }
  std::vector<float> out(in.size());
  KernelsOf(GetParam().instruction_class)
      .exp(in.data(), static_cast<std::int64_t>(in.size()), out.data());
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(Bits(out[i]), Bits(base::Exp(in[i]))) << in[i];
  }
}

TEST_P(RowsTest, RmsNormMatchesPlainLoopsAlsoInPlace) {
  for (const std::int64_t columns : {1, 31, 32, 33, 576, 1000}) {
    Matrix in(37, columns);
    FillNormal(in, random_);
    std::vector<float> weight(static_cast<std::size_t>(columns));
    for (float& w : weight) w = std::normal_distribution<float>()(random_);
    Matrix expected(37, columns);
    for (std::int64_t r = 0; r < 37; ++r) {
      float lane[32] = {};
      for (std::int64_t k = 0; k < columns; ++k) {
        lane[k % 32] = std::fma(in.at(r, k), in.at(r, k), lane[k % 32]);
      }
      for (int w = 16; w >= 1; w /= 2) {
        for (int i = 0; i < w; ++i) lane[i] = lane[i] + lane[i + w];
      }
      const float inverse = 1.0f / std::sqrt(lane[0] / static_cast<float>(columns) + 1e-5f);
      for (std::int64_t k = 0; k < columns; ++k) {
        expected.at(r, k) = in.at(r, k) * inverse * weight[static_cast<std::size_t>(k)];
      }
    }
    ops_->RmsNorm({.in = in.view(), .weight = weight, .out = in.view()}, {});
    ExpectSameBits(in, expected);
  }
}

TEST_P(RowsTest, SiluMulAndAddMatchPlainLoops) {
  Matrix gate_up(5, 2 * 41), out(5, 41), expected(5, 41);
  FillNormal(gate_up, random_);
  gate_up.at(0, 0) = 100.0f;
  gate_up.at(0, 1) = -100.0f;
  gate_up.at(0, 2) = -0.0f;
  gate_up.at(0, 3) = std::nanf("");
  for (std::int64_t r = 0; r < 5; ++r) {
    for (std::int64_t c = 0; c < 41; ++c) {
      expected.at(r, c) = base::Silu(gate_up.at(r, c)) * gate_up.at(r, 41 + c);
    }
  }
  ops_->SiluMul({.gate_up = gate_up.view(), .out = out.view()}, {});
  ExpectSameBits(out, expected);

  Matrix addend(5, 41);
  FillNormal(addend, random_);
  for (std::int64_t r = 0; r < 5; ++r) {
    for (std::int64_t c = 0; c < 41; ++c) expected.at(r, c) = out.at(r, c) + addend.at(r, c);
  }
  ops_->Add({.addend = addend.view(), .inout = out.view()}, {});
  ExpectSameBits(out, expected);
}

TEST_P(RowsTest, RopeTurnsPairsOfBothKindsAndLeavesTheRest) {
  constexpr std::int64_t kHeadSize = 32;
  Matrix cos(50, 12), sin(50, 12);
  FillNormal(cos, random_);
  FillNormal(sin, random_);
  const std::vector<std::int32_t> positions = {0, 49, 7};
  for (const RopePairs pairs : {RopePairs::kInterleaved, RopePairs::kHalves}) {
    Matrix query(3, 2 * kHeadSize), key(3, kHeadSize);
    FillNormal(query, random_);
    FillNormal(key, random_);
    Matrix expected_query = query, expected_key = key;
    for (Matrix* side : {&expected_query, &expected_key}) {
      for (std::int64_t t = 0; t < 3; ++t) {
        for (std::int64_t i = 0; i < side->columns / kHeadSize * 12; ++i) {
          const std::int64_t head = i / 12 * kHeadSize;
          const std::int64_t pair = i % 12;
          const bool interleaved = pairs == RopePairs::kInterleaved;
          float& a = side->at(t, head + (interleaved ? 2 * pair : pair));
          float& b = side->at(t, head + (interleaved ? 2 * pair + 1 : pair + 12));
          const std::int32_t position = positions[static_cast<std::size_t>(t)];
          const float c = cos.at(position, pair);
          const float s = sin.at(position, pair);
          const float turned_a = std::fma(a, c, -(b * s));
          b = std::fma(b, c, a * s);
          a = turned_a;
        }
      }
    }
    ops_->Rope({.query = query.view(),
                .key = key.view(),
                .head_size = kHeadSize,
                .rotary_size = 24,
                .pairs = pairs,
                .cos = cos.view(),
                .sin = sin.view(),
                .positions = positions},
               {});
    ExpectSameBits(query, expected_query);
    ExpectSameBits(key, expected_key);
  }
}

// A pool of 4 blocks of 4 tokens, every element its own number.
struct CountingPool {
  explicit CountingPool(KeyOrder order, bool extent) {
    const base::KvGroup group = {.num_layers = 2,
                                 .window_tokens = std::nullopt,
                                 .num_kv_heads = 2,
                                 .head_size = 16,
                                 .type = base::KvType::kF32};
    elements.resize(static_cast<std::size_t>(group.BytesPerToken() * 4 * 4 / 4));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i + 1);
    view = BlockMajorKvView(reinterpret_cast<std::byte*>(elements.data()), group, 4, 4, order);
    if (!extent) view.extent_bytes = 0;
  }
  float& Element(const KvPlane& plane, std::uint32_t block, std::int64_t i, std::int64_t token,
                 std::int64_t d) const {
    return *reinterpret_cast<float*>(plane.Head(block, i / 2, i % 2) + token * plane.token_stride +
                                     d / 2 * plane.pair_stride + d % 2 * 4);
  }
  std::vector<float> elements;
  KvView view;
};

TEST_P(RowsTest, ZeroedBlocksAreZeroAndTheirNeighboursUntouched) {
  for (const KeyOrder order : {KeyOrder::kTokenMajor, KeyOrder::kDimPairMajor}) {
    for (const bool extent : {true, false}) {
      CountingPool pool(order, extent);
      const std::vector<std::uint32_t> blocks = {1, 3};
      ops_->ZeroBlocks(pool.view, blocks, {});
      const std::size_t block_elements = pool.elements.size() / 4;
      for (std::size_t i = 0; i < pool.elements.size(); ++i) {
        const bool zeroed = i / block_elements % 2 == 1;
        ASSERT_EQ(pool.elements[i], zeroed ? 0.0f : static_cast<float>(i + 1)) << i;
      }
    }
  }
}

TEST_P(RowsTest, CopiedSlotsAreEqualAndTheOthersUntouched) {
  for (const KeyOrder order : {KeyOrder::kTokenMajor, KeyOrder::kDimPairMajor}) {
    CountingPool pool(order, true);
    CountingPool source(order, true);
    const std::vector<BlockCopy> copies = {{1, 2, 3}, {2, 3, 1}};
    ops_->CopyBlocks(pool.view, copies, {});
    for (const auto plane : {&KvView::key, &KvView::value}) {
      for (std::int64_t i = 0; i < 4 * 16 * 4; ++i) {
        const std::int64_t head = i / 64, token = i / 16 % 4, d = i % 16;
        const auto original = [&](std::uint32_t block) {
          return source.Element(source.view.*plane, block, head, token, d);
        };
        const auto copied = [&](std::uint32_t block) {
          return pool.Element(pool.view.*plane, block, head, token, d);
        };
        ASSERT_EQ(copied(2), original(token < 3 ? 1 : 2));
        ASSERT_EQ(copied(3), original(token < 1 ? 1 : 3));
        ASSERT_EQ(copied(1), original(1));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, RowsTest, testing::ValuesIn(AllSettings()), SettingName);

TEST(CpuOps, RefusesNoThreadsAndClassesThatTheMachineLacks) {
  EXPECT_EQ(MakeCpuOps({.num_threads = 0, .instruction_class = std::nullopt}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::vector<InstructionClass> available = AvailableInstructionClasses();
  if (available.back() != InstructionClass::kAvx512Vnni) {
    const auto refused =
        MakeCpuOps({.num_threads = 1, .instruction_class = InstructionClass::kAvx512Vnni});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace pagoda::kernels::cpu
