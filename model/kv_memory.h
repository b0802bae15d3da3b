#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace pagoda::model {

// What decides the size of the KV pool.
struct KvMemoryQuestion {
  std::optional<std::int64_t> asked_bytes;  // none: auto
  std::int64_t available_bytes = 0;         // with the weights loaded
  std::int64_t bytes_per_block = 0;
  std::int64_t blocks_per_full_request = 0;
  std::int64_t max_num_seqs = 0;
};

struct KvMemoryAnswer {
  std::int32_t num_blocks = 0;  // the null block included
  std::string explanation;      // one line for the log, with every number that led here
};

// Auto takes kAutoShare of what is available, and never more than all sequences at full length can
// use.
inline constexpr double kAutoShare = 0.5;

// ResourceExhausted, with all numbers and what to do, when not one full-length request fits.
absl::StatusOr<KvMemoryAnswer> ChooseKvMemory(const KvMemoryQuestion& question);

}  // namespace pagoda::model
