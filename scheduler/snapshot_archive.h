#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/instant.h"
#include "base/strong_id.h"

namespace pagoda::scheduler {

// Fields to bytes, or back, in one order: what is written for a part of the state and what is read
// are the same lines. Writes into memory it is given and allocates nothing; what does not fit, and
// what cannot have been written, makes it not ok, and from then on it does nothing. Plain integers
// as they lie in this machine's memory: whoever keeps the bytes keeps them for the same build.
class SnapshotArchive {
 public:
  explicit SnapshotArchive(std::span<std::uint8_t> out) : out_(out) {}
  explicit SnapshotArchive(std::span<const std::uint8_t> in) : in_(in), is_reading_(true) {}

  bool is_reading() const { return is_reading_; }
  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  std::size_t position() const { return position_; }

  // Scalars: integers, enums, bool, StrongIds, Instants, optionals of these.
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (Field(fields), ...);
  }

  void Bytes(std::span<std::uint8_t> bytes) { Raw(bytes.data(), bytes.size()); }

  // An array whose length the configuration fixes.
  template <typename T, typename Visit>
  void Fixed(std::vector<T>& items, Visit visit) {
    std::uint64_t size = items.size();
    Field(size);
    if (size != items.size()) ok_ = false;
    for (std::size_t i = 0; ok_ && i < items.size(); ++i) visit(*this, items[i]);
  }
  // A list of at most `most`.
  template <typename T, typename Visit>
  void List(std::vector<T>& items, std::size_t most, Visit visit) {
    std::uint64_t size = items.size();
    Field(size);
    if (size > most) ok_ = false;
    if (is_reading_ && ok_) items.resize(size);
    for (std::size_t i = 0; ok_ && i < items.size(); ++i) visit(*this, items[i]);
  }
  // One that has room for `most` from the start.
  template <typename T, typename Visit>
  void Growing(std::vector<T>& items, std::size_t most, Visit visit) {
    if (is_reading_ && ok_) items.reserve(most);
    List(items, most, visit);
  }
  template <typename T>
  void Fixed(std::vector<T>& items) {
    Fixed(items, [](SnapshotArchive& a, T& item) { a(item); });
  }
  template <typename T>
  void List(std::vector<T>& items, std::size_t most) {
    List(items, most, [](SnapshotArchive& a, T& item) { a(item); });
  }
  template <typename T>
  void Growing(std::vector<T>& items, std::size_t most) {
    Growing(items, most, [](SnapshotArchive& a, T& item) { a(item); });
  }
  void Text(std::string& text) {
    constexpr std::uint64_t kMost = 4096;
    std::uint64_t size = text.size();
    Field(size);
    if (size > kMost) ok_ = false;
    if (!ok_) return;
    if (is_reading_) text.resize(size);
    Raw(text.data(), size);
  }

 private:
  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void Field(T& value) {
    Raw(&value, sizeof value);
  }
  template <typename Tag, typename Rep>
  void Field(base::StrongId<Tag, Rep>& id) {
    Rep value = id.value();
    Field(value);
    id = base::StrongId<Tag, Rep>(value);
  }
  void Field(base::Instant& instant) {
    std::int64_t nanos = instant.nanos();
    Field(nanos);
    instant = base::Instant::FromNanos(nanos);
  }
  template <typename T>
  void Field(std::optional<T>& value) {
    bool has_value = value.has_value();
    Field(has_value);
    if (!has_value) return value.reset();
    T held = value.value_or(T{});
    Field(held);
    value = held;
  }

  void Raw(void* data, std::size_t size) {
    if (!ok_ || size == 0) return;
    const std::size_t room = (is_reading_ ? in_.size() : out_.size()) - position_;
    if (size > room) {
      ok_ = false;
      return;
    }
    if (is_reading_) {
      std::memcpy(data, in_.data() + position_, size);
    } else {
      std::memcpy(out_.data() + position_, data, size);
    }
    position_ += size;
  }

  std::span<std::uint8_t> out_;
  std::span<const std::uint8_t> in_;
  bool is_reading_ = false;
  bool ok_ = true;
  std::size_t position_ = 0;
};

}  // namespace pagoda::scheduler
