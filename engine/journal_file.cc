#include "engine/journal_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace pagoda::engine {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {'P', 'A', 'G', 'O', 'D', 'A', 'J', '1'};
constexpr std::size_t kHeadBytes = kMagic.size() + 16;  // whole size, number of segments
constexpr std::size_t kSegmentHeadBytes = 5 * 8;
constexpr std::size_t kSumBytes = sizeof(base::Digest256);

void Put(std::vector<std::uint8_t>& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

// Requires: the bytes are there.
std::uint64_t Take(std::span<const std::uint8_t>& bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i)
    number |= std::uint64_t{bytes[static_cast<std::size_t>(i)]} << (8 * i);
  bytes = bytes.subspan(8);
  return number;
}

base::Digest256 SumOf(std::span<const std::uint8_t> bytes) {
  base::KeyedHasher hasher(base::Digest256{});
  hasher.AddField(1, bytes);
  return hasher.Finish();
}

absl::Status CheckWhole(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kMagic.size() || !std::ranges::equal(bytes.first(kMagic.size()), kMagic)) {
    return absl::DataLossError("this is no journal of Pagoda");
  }
  if (bytes.size() < kHeadBytes + kSumBytes) {
    return absl::DataLossError(absl::StrCat("the journal is cut short: it has ", bytes.size(),
                                            " bytes, not even a beginning"));
  }
  std::span<const std::uint8_t> head = bytes.subspan(kMagic.size());
  const std::uint64_t size = Take(head);
  if (bytes.size() != size) {
    return absl::DataLossError(absl::StrCat("the journal is ",
                                            bytes.size() < size ? "cut short" : "too long",
                                            ": it has ", bytes.size(), " bytes of ", size));
  }
  const base::Digest256 sum = SumOf(bytes.first(bytes.size() - kSumBytes));
  if (std::ranges::equal(bytes.last(kSumBytes), sum)) return absl::OkStatus();
  return absl::DataLossError("the journal is damaged: its checksum is another one");
}

}  // namespace

std::vector<std::uint8_t> EncodeJournal(std::span<const StoredSegment> segments) {
  std::uint64_t size = kHeadBytes + kSumBytes;
  for (const StoredSegment& segment : segments) {
    size += kSegmentHeadBytes + segment.snapshot.size() + segment.records.size();
  }
  std::vector<std::uint8_t> out(kMagic.begin(), kMagic.end());
  out.reserve(size);
  Put(out, size);
  Put(out, segments.size());
  for (const StoredSegment& segment : segments) {
    Put(out, segment.number);
    Put(out, segment.opening_digest);
    Put(out, segment.follows_on);
    Put(out, segment.snapshot.size());
    Put(out, segment.records.size());
    out.insert(out.end(), segment.snapshot.begin(), segment.snapshot.end());
    out.insert(out.end(), segment.records.begin(), segment.records.end());
  }
  const base::Digest256 sum = SumOf(out);
  out.insert(out.end(), sum.begin(), sum.end());
  return out;
}

absl::StatusOr<std::vector<StoredSegment>> DecodeJournal(std::span<const std::uint8_t> bytes) {
  PAGODA_RETURN_IF_ERROR(CheckWhole(bytes));
  bytes = bytes.first(bytes.size() - kSumBytes).subspan(kMagic.size() + 8);
  std::vector<StoredSegment> segments;
  for (std::uint64_t left = Take(bytes); left > 0; --left) {
    if (bytes.size() < kSegmentHeadBytes) return absl::DataLossError("a segment has no beginning");
    StoredSegment& segment = segments.emplace_back();
    segment.number = Take(bytes);
    segment.opening_digest = Take(bytes);
    segment.follows_on = Take(bytes) != 0;
    const std::uint64_t snapshot = Take(bytes);
    const std::uint64_t records = Take(bytes);
    if (snapshot > bytes.size() || records > bytes.size() - snapshot) {
      return absl::DataLossError("a segment is longer than the journal");
    }
    const auto begin = bytes.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(snapshot);
    segment.snapshot.assign(begin, end);
    segment.records.assign(end, end + static_cast<std::ptrdiff_t>(records));
    bytes = bytes.subspan(snapshot + records);
  }
  return segments;
}

absl::StatusOr<std::vector<std::uint8_t>> DumpJournal(Journal& journal,
                                                      const base::Digest256& secret) {
  const Journal::Pin pin(journal);
  if (pin.segments().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "nothing was recorded: a snapshot of the scheduler needs more than the ",
        journal.segment_bytes(), " bytes of a segment, a third of the journal's memory"));
  }
  std::vector<StoredSegment> stored;
  for (const JournalSegment& segment : pin.segments()) {
    PAGODA_ASSIGN_OR_RETURN(StoredSegment one, Disguise(segment, secret));
    stored.push_back(std::move(one));
  }
  return EncodeJournal(stored);
}

}  // namespace pagoda::engine
