#include "engine/journal.h"

#include "base/check.h"

namespace pagoda::engine {
namespace {

// A snapshot that is too large today is hardly smaller at the next step.
constexpr int kPatience = 4096;

}  // namespace

Journal::Journal(std::size_t num_bytes) {
  for (Place& place : places_) place.bytes.resize(num_bytes / kNumPlaces);
}

bool Journal::wants_segment() {
  if (patience_ > 0) {
    --patience_;
    return false;
  }
  if (writing_ == nullptr || is_cut_) return true;
  return used_ > segment_bytes() - segment_bytes() / 8;
}

std::span<std::uint8_t> Journal::BeginSegment() {
  opening_ = nullptr;
  base::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < kNumPlaces; ++i) {
    if (i == kept_[0] || i == kept_[1] || num_pins_[i] > 0) continue;
    opening_ = &places_[i];
    return opening_->bytes;
  }
  return {};
}

void Journal::OpenSegment(std::size_t snapshot_bytes, std::uint64_t digest) {
  PAGODA_CHECK(opening_ != nullptr);
  PAGODA_CHECK(snapshot_bytes <= opening_->bytes.size());
  const bool fits = snapshot_bytes > 0 && snapshot_bytes <= segment_bytes() / 4 * 3;
  did_not_fit_.store(!fits, std::memory_order_relaxed);
  if (!fits) {
    is_cut_ = true;
    patience_ = kPatience;
    return;
  }
  opening_->number = ++num_segments_;
  opening_->opening_digest = digest;
  opening_->follows_on = is_recording();
  opening_->snapshot_bytes = snapshot_bytes;
  opening_->used.store(snapshot_bytes, std::memory_order_release);
  writing_ = opening_;
  used_ = snapshot_bytes;
  is_cut_ = false;
  base::MutexLock lock(mutex_);
  kept_ = {kept_[1], static_cast<std::size_t>(writing_ - places_.data())};
}

void Journal::AddRecord(std::size_t num_bytes) {
  used_ += num_bytes;
  writing_->used.store(used_, std::memory_order_release);
}

Journal::Pin::Pin(Journal& journal) : journal_(journal) {
  base::MutexLock lock(journal_.mutex_);
  for (const std::size_t kept : journal_.kept_) {
    if (kept == kNone) continue;
    ++journal_.num_pins_[kept];
    const Place& place = journal_.places_[kept];
    const auto bytes = std::span(place.bytes).first(place.used.load(std::memory_order_acquire));
    places_[num_segments_] = kept;
    segments_[num_segments_++] = {.number = place.number,
                                  .opening_digest = place.opening_digest,
                                  .follows_on = place.follows_on,
                                  .snapshot = bytes.first(place.snapshot_bytes),
                                  .records = bytes.subspan(place.snapshot_bytes)};
  }
}

Journal::Pin::~Pin() {
  base::MutexLock lock(journal_.mutex_);
  for (std::size_t i = 0; i < num_segments_; ++i) --journal_.num_pins_[places_[i]];
}

}  // namespace pagoda::engine
