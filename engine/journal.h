#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/runtime/mutex.h"

namespace pagoda::engine {

// One stretch of a journal: a snapshot of the scheduler, and every call that changed it since.
struct JournalSegment {
  std::uint64_t number = 0;          // counts the segments of this process
  std::uint64_t opening_digest = 0;  // of all decisions before it
  bool follows_on = false;           // nothing was left out between it and the one before
  std::span<const std::uint8_t> snapshot, records;
};

// What the scheduler was told, kept in memory of a fixed size: the last two segments. In memory
// they hold prompts and keys as the scheduler does; journal_disguise.h takes those out before
// anything is written down.
// Owner: Engine. Threads: one writes (the engine's); any may pin and read. The writer never waits
// for a reader: while both places that it could open anew are being read, it leaves the stretch
// out. Nothing allocates after construction.
class Journal {
 public:
  // `num_bytes` in all, for three segments: the two that are kept, and the one being opened.
  explicit Journal(std::size_t num_bytes);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // --- The writer's
  bool is_recording() const { return writing_ != nullptr && !is_cut_; }
  // Whether the open segment is nearly full, cut, or there is none. Asked whenever one could be
  // opened: after a snapshot that did not fit it says no for a long while.
  bool wants_segment();
  // Room for a snapshot; empty when every place is being read. The segment is open once its
  // snapshot has been written, of so many bytes. One of 0 bytes did not fit, and one that leaves
  // less than a quarter does not either: nothing is recorded then.
  std::span<std::uint8_t> BeginSegment() PAGODA_EXCLUDES(mutex_);
  void OpenSegment(std::size_t snapshot_bytes, std::uint64_t digest) PAGODA_EXCLUDES(mutex_);
  // Room for a record, which is part of the journal once its size is told. One that does not fit
  // cuts the segment: it ends before it.
  std::span<std::uint8_t> record_room() { return std::span(writing_->bytes).subspan(used_); }
  void AddRecord(std::size_t num_bytes);
  void Cut() { is_cut_ = true; }

  // --- A reader's
  // The last segments, oldest first, as far as they are written; they stay as they are until this
  // goes.
  class Pin {
   public:
    explicit Pin(Journal& journal) PAGODA_EXCLUDES(journal.mutex_);
    ~Pin() PAGODA_EXCLUDES(journal_.mutex_);
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    std::span<const JournalSegment> segments() const {
      return std::span(segments_).first(num_segments_);
    }

   private:
    Journal& journal_;
    std::array<JournalSegment, 2> segments_;
    std::array<std::size_t, 2> places_ = {};
    std::size_t num_segments_ = 0;
  };
  // What keeps it from recording, if anything does: a snapshot needs more than there is.
  bool snapshot_did_not_fit() const { return did_not_fit_.load(std::memory_order_relaxed); }
  std::size_t segment_bytes() const { return places_[0].bytes.size(); }

 private:
  static constexpr std::size_t kNumPlaces = 3;
  static constexpr std::size_t kNone = kNumPlaces;
  struct Place {
    std::vector<std::uint8_t> bytes;
    std::uint64_t number = 0, opening_digest = 0;
    bool follows_on = false;
    std::size_t snapshot_bytes = 0;
    std::atomic<std::size_t> used = 0;  // what lies below it is never written again while kept
  };

  // The writer's own.
  Place* writing_ = nullptr;
  Place* opening_ = nullptr;
  std::size_t used_ = 0;
  bool is_cut_ = false;
  int patience_ = 0;  // so often it is not tried again
  std::uint64_t num_segments_ = 0;
  std::atomic<bool> did_not_fit_ = false;

  std::array<Place, kNumPlaces> places_;
  base::Mutex mutex_;
  std::array<std::size_t, 2> kept_ PAGODA_GUARDED_BY(mutex_) = {kNone, kNone};  // oldest first
  std::array<int, kNumPlaces> num_pins_ PAGODA_GUARDED_BY(mutex_) = {};
};

}  // namespace pagoda::engine
