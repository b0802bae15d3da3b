// Plays a dumped journal again: replay_journal FILE. Exit status 0: every decision was the one that
// is written down; 1: another one, or a file that is none; 2: usage.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "engine/journal_file.h"
#include "engine/journal_replay.h"

namespace pagoda::simulation {
namespace {

absl::StatusOr<engine::ReplayReport> Replay(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return absl::NotFoundError("cannot be read");
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(stream.tellg()));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  PAGODA_ASSIGN_OR_RETURN(const auto stored, engine::DecodeJournal(bytes));
  std::vector<engine::JournalSegment> segments;
  for (const engine::StoredSegment& segment : stored) segments.push_back(segment.view());
  return engine::ReplaySegments(segments);
}

}  // namespace

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: replay_journal FILE\n");
    return 2;
  }
  const auto report = Replay(argv[1]);
  if (!report.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], std::string(report.status().message()).c_str());
    return 1;
  }
  std::printf("%lld segments, %lld inputs, %lld decisions, all equal; digest %016llx\n",
              static_cast<long long>(report->num_segments),
              static_cast<long long>(report->num_inputs),
              static_cast<long long>(report->num_decisions),
              static_cast<unsigned long long>(report->decisions));
  return 0;
}

}  // namespace pagoda::simulation

int main(int argc, char** argv) { return pagoda::simulation::Main(argc, argv); }
