#include "model/rope_tables.h"

#include <cmath>

#include "base/check.h"

namespace pagoda::model {

RopeTables::RopeTables(const Config& config, std::span<const float> factors,
                       std::int32_t num_positions)
    : num_positions_(num_positions), num_pairs_(config.rotary_size / 2) {
  PAGODA_CHECK(factors.empty() || static_cast<std::int64_t>(factors.size()) == num_pairs_);
  cos_.reserve(static_cast<std::size_t>(num_positions_ * num_pairs_));
  sin_.reserve(static_cast<std::size_t>(num_positions_ * num_pairs_));
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < num_pairs_; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / config.rotary_size;
    const double factor = factors.empty() ? 1.0 : factors[static_cast<std::size_t>(i)];
    frequencies.push_back(std::pow(config.rope_base, exponent) / factor);
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
