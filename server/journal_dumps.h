#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/journal.h"
#include "server/core/operations.h"

namespace pagoda::server {

// Writes a journal to files of a folder: when an operator asks, when steps fail, and, once for the
// whole process, when an invariant is broken. A file is whole or is not there. Owner: ServerStack.
// Threads: any; while one writes, others are told to come again.
class JournalDumps {
 public:
  // The journal must outlive this.
  JournalDumps(engine::Journal& journal, std::string folder);
  ~JournalDumps();
  JournalDumps(const JournalDumps&) = delete;
  JournalDumps& operator=(const JournalDumps&) = delete;

  // `why` becomes part of the file's name.
  absl::StatusOr<JournalReport> Write(std::string_view why);
  // Steps failed: the first few times a file is written, and the log says where.
  void WriteForFailedSteps();
  // From now on a failed check writes one before it ends the process.
  void WriteForBrokenInvariants();

 private:
  static constexpr int kMostForFailedSteps = 4;

  absl::StatusOr<JournalReport> WriteFile(std::string_view why);

  engine::Journal& journal_;
  const std::string folder_;
  std::atomic<bool> is_writing_ = false;
  std::atomic<int> num_written_ = 0;
  std::atomic<int> num_for_failed_steps_ = 0;
};

}  // namespace pagoda::server
