#include "scheduler/step_draft.h"

#include <algorithm>

#include "base/check.h"

namespace pagoda::scheduler {

StepDraft::StepDraft(std::size_t num_slots, std::size_t num_blocks)
    : item_of_slot_(num_slots, kNone) {
  items_.reserve(num_slots);
  effects_.reserve(num_blocks + num_slots);
}

void StepDraft::Begin(base::JobId job) {
  job_ = job;
  items_.clear();
  effects_.clear();
  std::ranges::fill(item_of_slot_, kNone);
}

DraftItem& StepDraft::AddItem(const DraftItem& item) {
  PAGODA_CHECK(item_of_slot_[item.slot.value()] == kNone);
  PAGODA_CHECK(items_.size() != items_.capacity());
  item_of_slot_[item.slot.value()] = static_cast<std::uint32_t>(items_.size());
  return items_.emplace_back(item);
}

void StepDraft::AddZero(base::SlotId slot, base::BlockId block) {
  PAGODA_CHECK(effects_.size() < effects_.capacity());
  effects_.push_back({.block = block, .slot = slot});
}

void StepDraft::AddCopy(const DraftEffect& copy) {
  PAGODA_CHECK(effects_.size() < effects_.capacity());
  PAGODA_CHECK(copy.block != copy.source);
  effects_.push_back(copy);
}

void StepDraft::Drop(base::SlotId slot) {
  std::erase_if(effects_, [&](const DraftEffect& effect) {
    return effect.slot == slot && effect.source != base::kNullBlock;
  });
  const std::uint32_t item = item_of_slot_[slot.value()];
  if (item == kNone) return;
  items_.erase(items_.begin() + item);
  item_of_slot_[slot.value()] = kNone;
  for (std::uint32_t& other : item_of_slot_) {
    if (other != kNone && other > item) --other;
  }
}

}  // namespace pagoda::scheduler
