#include <cmath>

#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {
namespace {

struct Angles {
  explicit Angles(std::int64_t positions, std::int64_t pairs)
      : cos(positions, pairs), sin(positions, pairs) {
    for (std::int64_t p = 0; p < positions; ++p) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(p) / std::pow(10000.0, double(i) / double(pairs));
        cos.at(p, i) = static_cast<float>(std::cos(angle));
        sin.at(p, i) = static_cast<float>(std::sin(angle));
      }
    }
  }
  Matrix cos, sin;
};

struct RopeCase {
  std::int32_t head_size, rotary_size;
  RopePairs pairs;
};

constexpr RopeCase kCases[] = {{64, 64, RopePairs::kInterleaved}, {64, 64, RopePairs::kHalves},
                               {32, 32, RopePairs::kInterleaved}, {48, 20, RopePairs::kHalves},
                               {48, 20, RopePairs::kInterleaved}, {16, 2, RopePairs::kHalves},
                               {256, 256, RopePairs::kHalves},    {96, 2, RopePairs::kHalves}};

TEST_P(KernelSuite, RopeTurnsEachPairByItsAngleAndLeavesTheRest) {
  for (const RopeCase& c : kCases) {
    std::mt19937 random(21);
    const Angles angles(50, c.rotary_size / 2);
    const std::vector<std::int32_t> positions = {0, 49, 7, 7};
    const Matrix query = RandomMatrix(4, 3 * c.head_size, random);
    const Matrix key = RandomMatrix(4, c.head_size, random);
    Matrix q = query, k = key, wanted_q = query, wanted_k = key;
    RopeParams params = {q.view(), k.view(),          c.head_size,       c.rotary_size,
                         c.pairs,  angles.cos.view(), angles.sin.view(), positions};
    ops_->Rope(params, stream_);
    params.query = wanted_q.view();
    params.key = wanted_k.view();
    reference_->Rope(params, stream_);
    Finish();
    ExpectSameBits(q, wanted_q, "query");
    ExpectSameBits(k, wanted_k, "key");
    for (std::int64_t t = 0; t < 4; ++t) {
      for (std::int64_t i = 0; i < c.head_size; ++i) {
        const bool interleaved = c.pairs == RopePairs::kInterleaved;
        const std::int64_t pair = interleaved ? i / 2 : i % (c.rotary_size / 2);
        const bool second = interleaved ? i % 2 == 1 : i >= c.rotary_size / 2;
        const std::int64_t other = interleaved ? i ^ 1
                                   : second    ? i - c.rotary_size / 2
                                               : i + c.rotary_size / 2;
        if (i >= c.rotary_size) {
          ASSERT_EQ(k.at(t, i), key.at(t, i));
          continue;
        }
        const std::int64_t p = positions[static_cast<std::size_t>(t)];
        const double cosine = angles.cos.at(p, pair);
        const double sine = angles.sin.at(p, pair) * (second ? 1.0 : -1.0);
        ASSERT_NEAR(k.at(t, i), key.at(t, i) * cosine + key.at(t, other) * sine, 1e-6);
      }
    }
  }
}

TEST_P(KernelSuite, RopeAtPositionZeroChangesNothing) {
  std::mt19937 random(22);
  const Angles angles(1, 16);
  const Matrix query = RandomMatrix(1, 64, random);
  Matrix q = query, k = query;
  const std::vector<std::int32_t> positions = {0};
  ops_->Rope({q.view(), k.view(), 32, 32, RopePairs::kHalves, angles.cos.view(), angles.sin.view(),
              positions},
             stream_);
  Finish();
  ExpectSameBits(q, query, "query");
}

}  // namespace
}  // namespace pagoda::kernels
