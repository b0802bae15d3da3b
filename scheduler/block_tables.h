#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "scheduler/block_ref.h"

namespace pagoda::scheduler {

// The block table of every slot, and beside it what the device was told of it: a plan carries the
// difference. One object per KV group. Invariant: entry i of a slot's table is held by that slot in
// the pool, or a hole, of which the device is never told; no block stands twice in one table.
class BlockTables {
 public:
  BlockTables(std::size_t num_slots, std::size_t max_blocks)
      : max_blocks_(max_blocks),
        rows_(num_slots),
        entries_(num_slots * max_blocks),
        sent_(num_slots * max_blocks) {}

  std::size_t max_blocks() const { return max_blocks_; }
  std::int32_t size(base::SlotId slot) const { return rows_[slot.value()].size; }
  base::BlockId at(base::SlotId slot, std::int32_t index) const {
    return base::BlockId(EntriesOf(slot)[static_cast<std::size_t>(index)]);
  }

  // Has the processor fetch an entry.
  void Fetch(base::SlotId slot, std::int32_t index) const {
    __builtin_prefetch(&entries_[slot.value() * max_blocks_ + static_cast<std::size_t>(index)]);
  }

  void Append(base::SlotId slot, BlockRef block) {
    Row& row = rows_[slot.value()];
    PAGODA_CHECK(static_cast<std::size_t>(row.size) < max_blocks_);
    Entry(slot, row.size++) = std::move(block).IntoId().value();
  }
  // Places for blocks that come later, by Replace.
  void AppendHoles(base::SlotId slot, std::int32_t count) {
    Row& row = rows_[slot.value()];
    PAGODA_CHECK(static_cast<std::size_t>(row.size + count) <= max_blocks_);
    for (std::int32_t i = 0; i < count; ++i) Entry(slot, row.size++) = base::kNullBlock.value();
  }
  // Returns the block that stood there; the null block of a hole.
  base::BlockId Replace(base::SlotId slot, std::int32_t index, BlockRef block) {
    Row& row = rows_[slot.value()];
    PAGODA_CHECK(index < row.size);
    row.first_dirty = std::min(row.first_dirty, index);
    return base::BlockId(std::exchange(Entry(slot, index), std::move(block).IntoId().value()));
  }
  base::BlockId PopBack(base::SlotId slot) {
    Row& row = rows_[slot.value()];
    PAGODA_CHECK(row.size > 0);
    return base::BlockId(Entry(slot, --row.size));
  }
  // Entries that the device has not been told of; replaced ones do not count.
  std::int32_t num_untold(base::SlotId slot) const {
    return rows_[slot.value()].size - rows_[slot.value()].num_sent;
  }
  bool is_told(base::SlotId slot, std::int32_t index) const {
    return index < rows_[slot.value()].num_sent;
  }
  // The device row is opened anew: its tables are empty.
  void ForgetSent(base::SlotId slot) {
    PAGODA_CHECK(rows_[slot.value()].size == 0);
    rows_[slot.value()] = Row{};
  }

  // Calls tell(block, replace_index) for each entry that the device lacks (-1) or has otherwise,
  // and counts it as told.
  template <typename Tell>
  void TakeDifferences(base::SlotId slot, Tell tell) {
    Row& row = rows_[slot.value()];
    std::uint32_t* sent = sent_.data() + slot.value() * max_blocks_;
    for (std::int32_t i = std::min(row.first_dirty, row.num_sent); i < row.size; ++i) {
      const std::uint32_t block = Entry(slot, i);
      if (i < row.num_sent && sent[i] == block) continue;
      PAGODA_CHECK(block != base::kNullBlock.value());
      tell(base::BlockId(block), i < row.num_sent ? i : -1);
      sent[i] = block;
    }
    row.num_sent = std::max(row.num_sent, row.size);
    row.first_dirty = row.size;
  }

 private:
  friend struct SnapshotAccess;
  struct Row {
    std::int32_t size = 0;
    std::int32_t num_sent = 0;
    std::int32_t first_dirty = 0;  // of the entries sent
  };
  std::span<const std::uint32_t> EntriesOf(base::SlotId slot) const {
    return std::span(entries_).subspan(slot.value() * max_blocks_, max_blocks_);
  }
  std::uint32_t& Entry(base::SlotId slot, std::int32_t index) {
    return entries_[slot.value() * max_blocks_ + static_cast<std::size_t>(index)];
  }

  std::size_t max_blocks_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> entries_, sent_;
};

}  // namespace pagoda::scheduler
