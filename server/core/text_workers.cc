#include "server/core/text_workers.h"

#include <utility>

#include "base/check.h"

namespace pagoda::server {

TextWorkers::TextWorkers(const TextWorkerOptions& options, StreamRunner& runner) : runner_(runner) {
  for (std::size_t i = 0; i < options.num_tenants; ++i)
    queues_.emplace_back(options.queue_capacity);
  for (std::int32_t i = 0; i < options.num_threads; ++i) {
    threads_.emplace_back([this] { ThreadLoop(); });
  }
}

void TextWorkers::Post(base::TenantId tenant, ResponseStreamRef stream) {
  Push(tenant, Job{std::move(stream), nullptr});
}

void TextWorkers::Post(base::TenantId tenant, std::unique_ptr<TextCall> call) {
  Push(tenant, Job{nullptr, std::move(call)});
}

void TextWorkers::Push(base::TenantId tenant, Job job) {
  {
    base::MutexLock lock(mutex_);
    PAGODA_CHECK(tenant.value() < queues_.size());
    PAGODA_CHECK_MSG(queues_[tenant.value()].TryPush(std::move(job)),
                     "text queue over its permits");
  }
  ready_.NotifyOne();
}

bool TextWorkers::TryPopNext(Job& job) {
  for (std::size_t tried = 0; tried < queues_.size(); ++tried) {
    base::BoundedRing<Job>& queue = queues_[next_tenant_];
    next_tenant_ = (next_tenant_ + 1) % queues_.size();
    if (queue.empty()) continue;
    job = queue.Pop();
    return true;
  }
  return false;
}

void TextWorkers::Run(Job job) {
  if (job.stream != nullptr) runner_.RunText(job.stream);
  if (job.call != nullptr) job.call->RunText();
}

void TextWorkers::ThreadLoop() {
  while (true) {
    Job job;
    {
      base::MutexLock lock(mutex_);
      while (!TryPopNext(job)) {
        if (stopping_) return;
        ready_.Wait(mutex_);
      }
    }
    Run(std::move(job));
  }
}

void TextWorkers::RunPending() {
  while (true) {
    Job job;
    {
      base::MutexLock lock(mutex_);
      if (!TryPopNext(job)) return;
    }
    Run(std::move(job));
  }
}

void TextWorkers::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  ready_.NotifyAll();
  threads_.clear();
  RunPending();
}

}  // namespace pagoda::server
