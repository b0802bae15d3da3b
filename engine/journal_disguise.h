#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/keyed_hash.h"
#include "engine/journal.h"

namespace pagoda::engine {

// A segment that owns its bytes.
struct StoredSegment {
  std::uint64_t number = 0, opening_digest = 0;
  bool follows_on = false;
  std::vector<std::uint8_t> snapshot = {}, records = {};

  JournalSegment view() const {
    return {.number = number,
            .opening_digest = opening_digest,
            .follows_on = follows_on,
            .snapshot = snapshot,
            .records = records};
  }
};

// The same life without what it was about. A token becomes a keyed hash of itself and of all tokens
// before it: two prompts have the same number at a place if and only if they agree up to there,
// which is all that a scheduler asks of tokens, and how often a word comes cannot be counted.
// Namespace keys become keyed hashes, block keys follow from both. Lengths, times, tenants' names
// and limits stay. Under one secret equal stays equal between segments; without it a guess at a
// prompt cannot be tried. The segment is played meanwhile, all but its last record, so an error
// says that it does not replay.
absl::StatusOr<StoredSegment> Disguise(const JournalSegment& segment,
                                       const base::Digest256& secret);

}  // namespace pagoda::engine
