#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace pagoda::base {

// First-in first-out queue with a capacity fixed at construction; never allocates afterwards. Not
// thread-safe.
template <typename T>
class BoundedRing {
 public:
  explicit BoundedRing(std::size_t capacity) : items_(capacity) { PAGODA_CHECK(capacity > 0); }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return items_.size(); }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == items_.size(); }

  // Returns false, and takes nothing, when full.
  [[nodiscard]] bool TryPush(T&& item) {
    if (full()) return false;
    items_[Wrap(head_ + size_)] = std::move(item);
    ++size_;
    return true;
  }

  // Requires: !empty().
  T Pop() {
    PAGODA_CHECK(!empty());
    T item = std::move(items_[head_]);
    items_[head_] = T{};
    head_ = Wrap(head_ + 1);
    --size_;
    return item;
  }

  const T& front() const {
    PAGODA_CHECK(!empty());
    return items_[head_];
  }
  // The i-th oldest item.
  const T& at(std::size_t i) const {
    PAGODA_CHECK(i < size_);
    return items_[Wrap(head_ + i)];
  }

 private:
  std::size_t Wrap(std::size_t i) const { return i >= items_.size() ? i - items_.size() : i; }

  std::vector<T> items_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace pagoda::base
