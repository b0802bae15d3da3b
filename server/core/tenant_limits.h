#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/runtime/mutex.h"
#include "scheduler/request.h"

namespace pagoda::server {

// What each tenant's requests are checked against, replaced as a whole by a reload. A request keeps
// the table it was checked against until the engine has it, and a reload waits for those: else one
// could reach a scheduler whose limits it does not keep. Threads: any; one that replaces. Tables
// must not outlive this.
class TenantLimits {
 public:
  // Whoever holds one has not yet handed its request over.
  class Table {
   public:
    Table(TenantLimits& owner, std::vector<scheduler::ModelLimits> by_tenant);
    ~Table();
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    const scheduler::ModelLimits& Of(base::TenantId tenant) const;
    const std::vector<scheduler::ModelLimits>& by_tenant() const { return by_tenant_; }

   private:
    TenantLimits& owner_;
    const std::vector<scheduler::ModelLimits> by_tenant_;
  };
  using Snapshot = std::shared_ptr<const Table>;

  explicit TenantLimits(std::vector<scheduler::ModelLimits> by_tenant);
  ~TenantLimits();  // Requires: nobody has a table.

  Snapshot current() const PAGODA_EXCLUDES(mutex_);
  // Holds for every request from now on; returns once nobody has an older table.
  void Replace(std::vector<scheduler::ModelLimits> by_tenant) PAGODA_EXCLUDES(mutex_);

 private:
  mutable base::Mutex mutex_;
  base::CondVar fewer_;
  std::int64_t num_tables_ PAGODA_GUARDED_BY(mutex_) = 0;
  Snapshot current_ PAGODA_GUARDED_BY(mutex_);
};

// What fits both: of each tenant the lower capacity and the fewer choices.
std::vector<scheduler::ModelLimits> Narrower(const std::vector<scheduler::ModelLimits>& a,
                                             const std::vector<scheduler::ModelLimits>& b);

}  // namespace pagoda::server
