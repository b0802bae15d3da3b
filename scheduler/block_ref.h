#pragma once

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/ids.h"

namespace pagoda::scheduler {

// A block on its way from the pool to a block table: {index, generation}, without a pool pointer.
// Move-only; whoever gets one must put it down (IntoId), which its destructor checks, so no hold is
// lost between the two.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(BlockRef&& other) noexcept
      : id_(std::exchange(other.id_, base::kNullBlock)), generation_(other.generation_) {}
  BlockRef& operator=(BlockRef&& other) noexcept {
    PAGODA_CHECK(empty());
    id_ = std::exchange(other.id_, base::kNullBlock);
    generation_ = other.generation_;
    return *this;
  }
  ~BlockRef() { PAGODA_CHECK_MSG(empty(), "a block reference was dropped"); }

  bool empty() const { return id_ == base::kNullBlock; }
  base::BlockId id() const { return id_; }
  std::uint64_t generation() const { return generation_; }
  // The holder is now whoever keeps the number.
  base::BlockId IntoId() && { return std::exchange(id_, base::kNullBlock); }

 private:
  friend class BlockPool;
  BlockRef(base::BlockId id, std::uint64_t generation) : id_(id), generation_(generation) {}

  base::BlockId id_ = base::kNullBlock;
  std::uint64_t generation_ = 0;
};

}  // namespace pagoda::scheduler
