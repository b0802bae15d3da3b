#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "scheduler/sequence.h"
#include "scheduler/step_budget.h"

namespace pagoda::scheduler {

// One sequence's part of a step.
struct DraftItem {
  base::RequestId request;
  RequestIndex place;
  std::uint32_t choice = 0;
  base::SlotId slot;
  std::uint32_t slot_generation = 0;
  PlannedStretch stretch;
  bool samples =
      false;  // the last token's row is sampled: the stretch reaches the end of what is expected
  bool is_decode = false;
  // Computes nothing: its first token is drawn from the row with which this slot ends the prompt.
  std::optional<base::SlotId> row_of = {};

  std::int32_t end() const { return stretch.first_position + stretch.num_tokens; }
};

// A zeroed block, or a copy of the first num_slots tokens of `source` into it.
struct DraftEffect {
  base::BlockId block;
  base::BlockId source = base::kNullBlock;  // of a copy
  std::uint32_t num_slots = 0;
  base::SlotId slot;  // whose block it is
};

// The plan in the making: what a later decision of the same plan can still take back. Becomes a
// StepPlan at commit.
class StepDraft {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;  // a slot without an item

  StepDraft(std::size_t num_slots, std::size_t num_blocks);

  void Begin(base::JobId job);
  base::JobId job() const { return job_; }
  bool empty() const { return items_.empty() && effects_.empty(); }

  std::span<const DraftItem> items() const { return items_; }
  std::span<const DraftEffect> effects() const { return effects_; }
  // Null when the slot has no item yet.
  DraftItem* ItemOf(base::SlotId slot) {
    const std::uint32_t item = item_of_slot_[slot.value()];
    return item == kNone ? nullptr : &items_[item];
  }
  bool HasItem(base::SlotId slot) const { return item_of_slot_[slot.value()] != kNone; }
  DraftItem& AddItem(const DraftItem& item);
  void AddZero(base::SlotId slot, base::BlockId block);
  void AddCopy(const DraftEffect& copy);
  // The sequence is a victim: its item and copies leave the plan. Its zeroed blocks stay, harmless:
  // they were handed out.
  void Drop(base::SlotId slot);

  // Hands the items over to the job's record, and where each slot's is, for reuse of all buffers.
  // Begin comes next.
  void SwapItems(std::vector<DraftItem>& items, std::vector<std::uint32_t>& item_of_slot) {
    items.swap(items_);
    item_of_slot.swap(item_of_slot_);
  }

 private:
  base::JobId job_;
  std::vector<DraftItem> items_;
  std::vector<std::uint32_t> item_of_slot_;
  std::vector<DraftEffect> effects_;
};

}  // namespace pagoda::scheduler
