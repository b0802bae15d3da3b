#include "server/core/admission_gate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

absl::Status QueueFull(const TenantBounds& bounds, std::int64_t requests, std::int64_t tokens,
                       std::int64_t asked_tokens) {
  return WithRetryAfter(
      base::WithReason(absl::ResourceExhaustedError(absl::StrCat(
                           "tenant ", bounds.name, " has ", requests, " of ", bounds.max_requests,
                           " requests and ", tokens, " of ", bounds.max_queued_tokens,
                           " queued prompt tokens inside; one more request of up to ", asked_tokens,
                           " tokens does not fit; try again later")),
                       reason::kQueueFull),
      kRetryAfterMs);
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

AdmissionGate::AdmissionGate(std::vector<TenantBounds> tenants)
    : tenants_(std::move(tenants)), usage_(tenants_.size()) {
  PAGODA_CHECK(!tenants_.empty());
}

AdmissionGate::~AdmissionGate() {
  base::MutexLock lock(mutex_);
  PAGODA_CHECK(num_inside_ == 0);
}

absl::StatusOr<AdmissionGate::Permit> AdmissionGate::TryEnter(base::TenantId tenant,
                                                              std::int64_t tokens) {
  PAGODA_CHECK(tenant.value() < tenants_.size());
  const TenantBounds& bounds = tenants_[tenant.value()];
  tokens = std::min(tokens, bounds.max_queued_tokens);
  Usage found;
  bool closed = false;
  {
    base::MutexLock lock(mutex_);
    Usage& usage = usage_[tenant.value()];
    closed = closed_;
    if (!closed && usage.requests < bounds.max_requests &&
        usage.tokens + tokens <= bounds.max_queued_tokens) {
      ++usage.requests;
      usage.tokens += tokens;
      ++num_inside_;
      Permit permit;
      permit.gate_ = this;
      permit.tenant_ = tenant;
      permit.tokens_ = tokens;
      return permit;
    }
    found = usage;
  }
  if (closed) return Unavailable(reason::kDraining, "the server is draining");
  return QueueFull(bounds, found.requests, found.tokens, tokens);
}

void AdmissionGate::GiveBack(base::TenantId tenant, Usage amount) {
  base::MutexLock lock(mutex_);
  Usage& usage = usage_[tenant.value()];
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

std::int64_t AdmissionGate::num_queued_tokens() const {
  base::MutexLock lock(mutex_);
  std::int64_t sum = 0;
  for (const Usage& usage : usage_) sum += usage.tokens;
  return sum;
}

std::int64_t AdmissionGate::max_requests() const {
  std::int64_t sum = 0;
  for (const TenantBounds& bounds : tenants_) sum += bounds.max_requests;
  return sum;
}

}  // namespace pagoda::server
