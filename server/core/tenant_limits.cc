#include "server/core/tenant_limits.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pagoda::server {

TenantLimits::Table::Table(TenantLimits& owner, std::vector<scheduler::ModelLimits> by_tenant)
    : owner_(owner), by_tenant_(std::move(by_tenant)) {
  base::MutexLock lock(owner_.mutex_);
  ++owner_.num_tables_;
}

TenantLimits::Table::~Table() {
  // Under the lock: whoever waits may destroy the owner as soon as this is over.
  base::MutexLock lock(owner_.mutex_);
  --owner_.num_tables_;
  owner_.fewer_.NotifyAll();
}

const scheduler::ModelLimits& TenantLimits::Table::Of(base::TenantId tenant) const {
  PAGODA_CHECK(tenant.value() < by_tenant_.size());
  return by_tenant_[tenant.value()];
}

TenantLimits::TenantLimits(std::vector<scheduler::ModelLimits> by_tenant) {
  auto first = std::make_shared<const Table>(*this, std::move(by_tenant));
  base::MutexLock lock(mutex_);
  current_ = std::move(first);
}

TenantLimits::~TenantLimits() {
  Snapshot last;
  {
    base::MutexLock lock(mutex_);
    last.swap(current_);
  }
  last.reset();  // without the lock, which its table takes
  base::MutexLock lock(mutex_);
  PAGODA_CHECK(num_tables_ == 0);
}

TenantLimits::Snapshot TenantLimits::current() const {
  base::MutexLock lock(mutex_);
  return current_;
}

void TenantLimits::Replace(std::vector<scheduler::ModelLimits> by_tenant) {
  auto next = std::make_shared<const Table>(*this, std::move(by_tenant));
  {
    base::MutexLock lock(mutex_);
    next.swap(current_);
  }
  next.reset();
  base::MutexLock lock(mutex_);
  while (num_tables_ > 1) fewer_.Wait(mutex_);
}

std::vector<scheduler::ModelLimits> Narrower(const std::vector<scheduler::ModelLimits>& a,
                                             const std::vector<scheduler::ModelLimits>& b) {
  PAGODA_CHECK(a.size() == b.size());
  std::vector<scheduler::ModelLimits> both = a;
  for (std::size_t i = 0; i < both.size(); ++i) {
    both[i].capacity_blocks = std::min(a[i].capacity_blocks, b[i].capacity_blocks);
    both[i].max_num_seqs = std::min(a[i].max_num_seqs, b[i].max_num_seqs);
  }
  return both;
}

}  // namespace pagoda::server
