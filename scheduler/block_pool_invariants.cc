// Derives the pool's counts and lists again from its blocks.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "scheduler/block_pool.h"
#include "scheduler/prefix_cache.h"

namespace pagoda::scheduler {

void BlockPool::CheckLists() const {
  std::vector<std::int32_t> on_lists(blocks_.size(), 0);
  const auto walk = [&](const List& list, BlockState state) {
    std::int32_t size = 0;
    std::uint32_t previous = 0;
    for (std::uint32_t item = list.first; item != 0; item = blocks_[item].next) {
      PAGODA_CHECK(++on_lists[item] == 1);
      PAGODA_CHECK(blocks_[item].state == state);
      PAGODA_CHECK(blocks_[item].previous == previous);
      previous = item;
      ++size;
    }
    PAGODA_CHECK(list.last == previous);
    PAGODA_CHECK(list.size == size);
  };
  walk(free_, BlockState::kFree);
  for (const List& list : retiring_) walk(list, BlockState::kRetiring);
  for (const Account& account : accounts_) walk(account.cached, BlockState::kCached);
  for (std::size_t item = 1; item < blocks_.size(); ++item) {
    const bool off_lists =
        blocks_[item].num_holders > 0 || blocks_[item].state == BlockState::kPublic;
    PAGODA_CHECK(on_lists[item] == (off_lists ? 0 : 1));
  }
}

void BlockPool::CheckInvariants() const {
  CheckLists();
  std::int32_t counted[kNumBlockStates] = {};
  std::vector<Account> accounts(accounts_.size());
  std::vector<std::int32_t> exclusive(exclusive_.size(), 0);
  for (std::uint32_t item = 1; item < blocks_.size(); ++item) {
    const Block& block = blocks_[item];
    ++counted[static_cast<std::size_t>(block.state)];
    if (block.state == BlockState::kPublic) {
      PAGODA_CHECK(!index_.has_entry(base::BlockId(item)));
      continue;
    }
    const bool held = block.state == BlockState::kOwned || block.state == BlockState::kSealed;
    PAGODA_CHECK(held == (block.num_holders > 0));
    PAGODA_CHECK(block.state != BlockState::kOwned || block.num_holders == 1);
    PAGODA_CHECK((block.state == BlockState::kRetiring) <= (block.last_job > fenced_));
    const bool indexed = index_.has_entry(base::BlockId(item));
    PAGODA_CHECK(block.state != BlockState::kCached || indexed);
    PAGODA_CHECK(!indexed ||
                 (block.state != BlockState::kFree && block.state != BlockState::kOwned));
    if (block.state == BlockState::kRetiring) {
      PAGODA_CHECK(indexed == (block.after == BlockState::kCached));
    }
    if (block.num_holders == 1) ++exclusive[block.holder_xor - 1];
    if (block.state == BlockState::kFree) continue;
    Account& account = accounts[block.tenant.value()];
    ++account.used;
    account.pinned += block.state != BlockState::kCached;
    account.retiring += block.state == BlockState::kRetiring;
    account.shared += block.num_holders > 1;
  }
  PAGODA_CHECK(std::ranges::equal(counted, counts_));
  PAGODA_CHECK(exclusive == exclusive_);
  PAGODA_CHECK(std::accumulate(std::begin(counted), std::end(counted), 1) == num_blocks());
  // What is set aside for the public lane is owed like a reserve.
  std::int32_t backed = num_in(BlockState::kFree);
  std::int32_t owed = public_blocks_ - num_in(BlockState::kPublic);
  PAGODA_CHECK(owed >= 0);
  for (std::size_t t = 0; t < accounts_.size(); ++t) {
    const Account& account = accounts_[t];
    PAGODA_CHECK(accounts[t].used == account.used);
    PAGODA_CHECK(accounts[t].pinned == account.pinned);
    PAGODA_CHECK(accounts[t].retiring == account.retiring);
    PAGODA_CHECK(accounts[t].shared == account.shared);
    PAGODA_CHECK(!account.share.isolated || account.used <= account.share.reserve_blocks);
    backed += account.cached.size;
    owed += std::max(0, account.share.reserve_blocks - account.pinned);
  }
  PAGODA_CHECK_MSG(CommonInUse() <= common_, "tenants hold more than common");
  PAGODA_CHECK_MSG(backed >= owed, "a reserve is not backed");
}

}  // namespace pagoda::scheduler
