#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/runtime/mutex.h"

namespace pagoda::server {

// What one tenant may have inside at once.
struct TenantBounds {
  std::string name = "default";
  std::int64_t max_requests = 0;       // accepted and not yet ended
  std::int64_t max_queued_tokens = 0;  // prompt tokens that have not led to a first token yet
};

// Where permits are taken, per tenant, before any shared queue: whoever holds one can be pushed
// into every queue behind, so no push can fail and no tenant can fill a queue for another. Threads:
// any.
class AdmissionGate {
 public:
  // The right of one request to be inside. Move-only; gives back what it still holds when
  // destroyed. Threads: one at a time.
  class Permit {
   public:
    Permit() = default;
    Permit(Permit&& other) noexcept { *this = std::move(other); }
    Permit& operator=(Permit&& other) noexcept;
    ~Permit() { Release(); }

    // The prompt turned out to have fewer tokens than reserved. More is our bug.
    void ShrinkTokens(std::int64_t tokens);
    void ReleaseTokens() { ShrinkTokens(0); }
    void Release();
    bool held() const { return gate_ != nullptr; }

   private:
    friend class AdmissionGate;
    AdmissionGate* gate_ = nullptr;
    base::TenantId tenant_{0};
    std::int64_t tokens_ = 0;
  };

  explicit AdmissionGate(const std::vector<TenantBounds>& tenants);
  ~AdmissionGate();  // Requires: nobody is inside.

  // `tokens` is an upper bound of the prompt's length, cut to the tenant's bound.
  // RESOURCE_EXHAUSTED (QUEUE_FULL, with a retry hint and the numbers) when the tenant has too much
  // inside; UNAVAILABLE (DRAINING) once closed.
  absl::StatusOr<Permit> TryEnter(base::TenantId tenant, std::int64_t tokens)
      PAGODA_EXCLUDES(mutex_);

  // From now on; what is inside stays, also where it is more. Requires: the same tenants.
  void SetBounds(const std::vector<TenantBounds>& tenants) PAGODA_EXCLUDES(mutex_);

  void Close() PAGODA_EXCLUDES(mutex_);
  // Returns false when the time came first.
  bool WaitUntilEmpty(base::Instant time) PAGODA_EXCLUDES(mutex_);

  std::int64_t num_inside() const PAGODA_EXCLUDES(mutex_);
  std::int64_t num_queued_tokens() const PAGODA_EXCLUDES(mutex_);
  std::int64_t num_queued_tokens(base::TenantId tenant) const PAGODA_EXCLUDES(mutex_);
  // How often this tenant was told to come again later.
  std::int64_t num_refused(base::TenantId tenant) const PAGODA_EXCLUDES(mutex_);

 private:
  struct Usage {
    std::int64_t requests = 0;
    std::int64_t tokens = 0;
  };
  struct Tenant {
    Usage bound, usage;
    std::int64_t num_refused = 0;
  };
  void GiveBack(base::TenantId tenant, Usage amount) PAGODA_EXCLUDES(mutex_);

  const std::vector<std::string> names_;
  mutable base::Mutex mutex_;
  base::CondVar emptied_;
  std::vector<Tenant> tenants_ PAGODA_GUARDED_BY(mutex_);
  std::int64_t num_inside_ PAGODA_GUARDED_BY(mutex_) = 0;
  bool closed_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::server
