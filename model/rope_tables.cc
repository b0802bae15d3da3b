#include "model/rope_tables.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace pagoda::model {
namespace {

// What the frequency of one pair is divided by.
double Llama3Divisor(const Config::Llama3Scaling& scaling, double frequency) {
  const double context = scaling.original_context;
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < context / scaling.high_frequency_factor) return 1.0;
  if (wavelength > context / scaling.low_frequency_factor) return scaling.factor;
  const double smooth = (context / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return 1.0 / ((1.0 - smooth) / scaling.factor + smooth);
}

}  // namespace

RopeTables::RopeTables(const Config& config, std::span<const float> factors,
                       std::int32_t num_positions)
    : num_positions_(num_positions), num_pairs_(config.rotary_size / 2) {
  PAGODA_CHECK(factors.empty() || static_cast<std::int64_t>(factors.size()) == num_pairs_);
  PAGODA_CHECK(factors.empty() || !config.llama3_scaling.has_value());
  cos_.reserve(static_cast<std::size_t>(num_positions_ * num_pairs_));
  sin_.reserve(static_cast<std::size_t>(num_positions_ * num_pairs_));
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < num_pairs_; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / config.rotary_size;
    const double frequency = std::pow(config.rope_base, exponent);
    double divisor = factors.empty() ? 1.0 : factors[static_cast<std::size_t>(i)];
    if (config.llama3_scaling.has_value()) {
      divisor = Llama3Divisor(*config.llama3_scaling, frequency);
    }
    frequencies.push_back(frequency / divisor);
  }
  for (std::int64_t position = 0; position < num_positions_; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) / config.rope_position_scale * frequency;
      cos_.push_back(static_cast<float>(std::cos(angle)));
      sin_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

}  // namespace pagoda::model
