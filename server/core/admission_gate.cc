#include "server/core/admission_gate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

std::vector<std::string> NamesOf(const std::vector<TenantBounds>& tenants) {
  std::vector<std::string> names;
  for (const TenantBounds& tenant : tenants) names.push_back(tenant.name);
  return names;
}

}  // namespace

AdmissionGate::Permit& AdmissionGate::Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    Release();
    gate_ = std::exchange(other.gate_, nullptr);
    tenant_ = other.tenant_;
    tokens_ = std::exchange(other.tokens_, 0);
  }
  return *this;
}

void AdmissionGate::Permit::ShrinkTokens(std::int64_t tokens) {
  if (gate_ == nullptr || tokens >= tokens_) return;
  gate_->GiveBack(tenant_, {.requests = 0, .tokens = tokens_ - tokens});
  tokens_ = tokens;
}

void AdmissionGate::Permit::Release() {
  if (gate_ == nullptr) return;
  std::exchange(gate_, nullptr)->GiveBack(tenant_, {.requests = 1, .tokens = tokens_});
  tokens_ = 0;
}

AdmissionGate::AdmissionGate(const std::vector<TenantBounds>& tenants)
    : names_(NamesOf(tenants)), tenants_(tenants.size()) {
  PAGODA_CHECK(!tenants.empty());
  SetBounds(tenants);
}

AdmissionGate::~AdmissionGate() {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK(num_inside_ == 0);
}

void AdmissionGate::SetBounds(const std::vector<TenantBounds>& tenants) {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK(tenants.size() == tenants_.size());
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    tenants_[i].bound = {.requests = tenants[i].max_requests,
                         .tokens = tenants[i].max_queued_tokens};
  }
}

absl::StatusOr<AdmissionGate::Permit> AdmissionGate::TryEnter(base::TenantId tenant,
                                                              std::int64_t tokens) {
  PAGODA_CHECK(tenant.value() < names_.size());
  Tenant found;
  bool closed = false;
  {
    base::MutexLock lock(mutex_);
    Tenant& entry = tenants_[tenant.value()];
    tokens = std::min(tokens, entry.bound.tokens);
    closed = closed_;
    if (!closed && entry.usage.requests < entry.bound.requests &&
        entry.usage.tokens + tokens <= entry.bound.tokens) {
      ++entry.usage.requests;
      entry.usage.tokens += tokens;
      ++num_inside_;
      Permit permit;
      permit.gate_ = this;
      permit.tenant_ = tenant;
      permit.tokens_ = tokens;
      return permit;
    }
    ++entry.num_refused;
    found = entry;
  }
  if (closed) return Unavailable(reason::kDraining, "the server is draining");
  return QueueFull(names_[tenant.value()],
                   absl::StrCat(found.usage.requests, " of ", found.bound.requests,
                                " requests and ", found.usage.tokens, " of ", found.bound.tokens,
                                " queued prompt tokens inside; one more request of up to ", tokens,
                                " tokens does not fit"));
}

void AdmissionGate::GiveBack(base::TenantId tenant, Usage amount) {
  base::MutexLock lock(mutex_);
  Usage& usage = tenants_[tenant.value()].usage;
  usage.requests -= amount.requests;
  usage.tokens -= amount.tokens;
  num_inside_ -= amount.requests;
  PAGODA_CHECK(usage.requests >= 0 && usage.tokens >= 0);
  // Under the lock: whoever waits may destroy the gate as soon as it is empty.
  if (num_inside_ == 0) emptied_.NotifyAll();
}

void AdmissionGate::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
}

bool AdmissionGate::WaitUntilEmpty(base::Instant time) {
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(time.nanos())};
  base::MutexLock lock(mutex_);
  while (num_inside_ > 0) {
    if (!emptied_.WaitUntil(mutex_, until) && num_inside_ > 0) return false;
  }
  return true;
}

std::int64_t AdmissionGate::num_inside() const {
  base::MutexLock lock(mutex_);
  return num_inside_;
}

std::int64_t AdmissionGate::num_queued_tokens(base::TenantId tenant) const {
  base::MutexLock lock(mutex_);
  return tenants_[tenant.value()].usage.tokens;
}

std::int64_t AdmissionGate::num_queued_tokens() const {
  base::MutexLock lock(mutex_);
  std::int64_t sum = 0;
  for (const Tenant& tenant : tenants_) sum += tenant.usage.tokens;
  return sum;
}

std::int64_t AdmissionGate::num_refused(base::TenantId tenant) const {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK(tenant.value() < tenants_.size());
  return tenants_[tenant.value()].num_refused;
}

}  // namespace pagoda::server
