#include "server/journal_dumps.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/runtime/log.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "engine/journal_file.h"
#include "server/core/auth/authenticator.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

// Of the process, as a failed check is.
std::atomic<JournalDumps*> for_broken_invariants{nullptr};

void WriteBeforeTheEnd() {
  JournalDumps* dumps = for_broken_invariants.load();
  if (dumps == nullptr) return;
  const auto report = dumps->Write("broken");
  const std::string said = report.ok() ? absl::StrCat("journal written to ", report->path)
                                       : std::string(report.status().message());
  std::fprintf(stderr, "%s\n", said.c_str());
}

}  // namespace

JournalDumps::JournalDumps(engine::Journal& journal, std::string folder)
    : journal_(journal), folder_(std::move(folder)) {}

JournalDumps::~JournalDumps() {
  JournalDumps* self = this;
  if (for_broken_invariants.compare_exchange_strong(self, nullptr)) base::SetFaultHook(nullptr);
}

void JournalDumps::WriteForBrokenInvariants() {
  for_broken_invariants.store(this);
  base::SetFaultHook(&WriteBeforeTheEnd);
}

absl::StatusOr<JournalReport> JournalDumps::Write(std::string_view why) {
  if (is_writing_.exchange(true)) {
    return WithRetryAfter(absl::ResourceExhaustedError("a journal is being written"),
                          kRetryAfterMs);
  }
  absl::StatusOr<JournalReport> report = WriteFile(why);
  is_writing_.store(false);
  return report;
}

absl::StatusOr<JournalReport> JournalDumps::WriteFile(std::string_view why) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes,
                          engine::DumpJournal(journal_, DrawSecret()));
  const std::string name =
      absl::StrCat("journal-", getpid(), "-", ++num_written_, "-", base::ToAbsl(why), ".pagoda");
  const std::string path = (std::filesystem::path(folder_) / name).string();
  const std::string unfinished = path + ".new";
  std::ofstream stream(unfinished, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  stream.close();
  std::error_code error;
  if (stream) std::filesystem::rename(unfinished, path, error);
  if (!stream || error) {
    std::filesystem::remove(unfinished, error);
    return absl::UnavailableError(
        absl::StrCat("--journal-dir ", folder_, ": ", bytes.size(), " bytes cannot be written"));
  }
  return JournalReport{.path = path, .bytes = static_cast<std::int64_t>(bytes.size())};
}

void JournalDumps::WriteForFailedSteps() {
  if (num_for_failed_steps_.fetch_add(1) >= kMostForFailedSteps) return;
  const auto report = Write("failed-step");
  if (report.ok()) {
    base::LogWarning(absl::StrCat("a step failed: its journal is in ", report->path));
  } else {
    base::LogError(
        absl::StrCat("a step failed, and no journal was written: ", report.status().message()));
  }
}

}  // namespace pagoda::server
