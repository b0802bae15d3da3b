#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/keyed_hash.h"
#include "engine/journal.h"
#include "engine/journal_disguise.h"

namespace pagoda::engine {

// A journal outside memory: its segments, disguised, with lengths and a checksum over all. Read by
// the build that wrote it.
std::vector<std::uint8_t> EncodeJournal(std::span<const StoredSegment> segments);

// DataLoss, saying which: no journal, cut short, longer than it should be, damaged.
absl::StatusOr<std::vector<StoredSegment>> DecodeJournal(std::span<const std::uint8_t> bytes);

// The last segments of a running journal as such a file, put aside under a secret that must be
// drawn for it. Any thread; the writer goes on meanwhile. FailedPrecondition when nothing was
// recorded.
absl::StatusOr<std::vector<std::uint8_t>> DumpJournal(Journal& journal,
                                                      const base::Digest256& secret);

}  // namespace pagoda::engine
