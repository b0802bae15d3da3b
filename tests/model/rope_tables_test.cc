#include "model/rope_tables.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace pagoda::model {
namespace {

Config RopeConfig() {
  Config config;
  config.head_size = 64;
  config.rotary_size = 64;
  config.rope_base = 100000.0;
  return config;
}

TEST(RopeTablesH2, EqualTheRoundedFp64ValueEvenAtLargePositions) {
  constexpr std::int32_t kPositions = 131072;
  const RopeTables tables(RopeConfig(), {}, kPositions);
  for (const std::int64_t position : {0, 1, 2047, 30000, 131071}) {
    for (std::int64_t pair = 0; pair < 32; ++pair) {
      const long double frequency = std::pow(100000.0L, -static_cast<long double>(pair) / 32.0L);
      const long double angle = static_cast<long double>(position) * frequency;
      // An fp64 angle of 131,071 is good to 1.5e-11; rounding to fp32 adds 3e-8.
      EXPECT_NEAR(tables.cos().Row(position)[pair], static_cast<double>(std::cos(angle)), 6e-8);
      EXPECT_NEAR(tables.sin().Row(position)[pair], static_cast<double>(std::sin(angle)), 6e-8);
    }
  }
}

TEST(RopeTablesG8, LinearScalingDividesPositions) {
  Config scaled = RopeConfig();
  scaled.rope_position_scale = 4.0;
  const RopeTables plain(RopeConfig(), {}, 2300);
  const RopeTables stretched(scaled, {}, 9001);
  for (std::int64_t pair = 0; pair < 32; ++pair) {
    EXPECT_EQ(stretched.cos().Row(9000)[pair], plain.cos().Row(2250)[pair]);
    EXPECT_EQ(stretched.sin().Row(9000)[pair], plain.sin().Row(2250)[pair]);
  }
}

TEST(RopeTablesG8, FactorsDivideTheFrequencyOfTheirPair) {
  std::array<float, 32> factors;
  factors.fill(1.0f);
  factors[7] = 8.0f;
  const RopeTables plain(RopeConfig(), {}, 1001);
  const RopeTables slowed(RopeConfig(), factors, 8001);
  EXPECT_EQ(slowed.cos().Row(8000)[7], plain.cos().Row(1000)[7]);
  EXPECT_EQ(slowed.sin().Row(1000)[6], plain.sin().Row(1000)[6]);
}

TEST(RopeTablesG8, Llama3ScalingSlowsLongWavelengthsAndLeavesShortOnes) {
  Config config = RopeConfig();
  config.llama3_scaling = Config::Llama3Scaling{.factor = 8.0,
                                                .low_frequency_factor = 1.0,
                                                .high_frequency_factor = 4.0,
                                                .original_context = 512};
  const RopeTables plain(RopeConfig(), {}, 9001);
  const RopeTables scaled(config, {}, 72001);
  for (std::int64_t pair = 0; pair < 32; ++pair) {
    const double wavelength =
        2 * std::acos(-1.0) * std::pow(100000.0, static_cast<double>(pair) / 32);
    if (wavelength < 128) {
      EXPECT_EQ(scaled.cos().Row(9000)[pair], plain.cos().Row(9000)[pair]) << pair;
    } else if (wavelength > 512) {
      EXPECT_NEAR(scaled.sin().Row(72000)[pair], plain.sin().Row(9000)[pair], 6e-8) << pair;
    } else {
      // Between an eighth of the angle and the whole of it.
      const double smooth = (512 / wavelength - 1) / 3;
      const double angle = 9000 / wavelength * 2 * std::acos(-1.0) * ((1 - smooth) / 8 + smooth);
      EXPECT_NEAR(scaled.cos().Row(9000)[pair], std::cos(angle), 6e-8) << pair;
    }
  }
}

}  // namespace
}  // namespace pagoda::model
