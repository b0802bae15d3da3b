#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/bounded_ring.h"
#include "base/ids.h"
#include "base/runtime/mutex.h"
#include "server/core/response_stream.h"

namespace pagoda::server {

// A one-off piece of text work, such as a Tokenize call.
class TextCall {
 public:
  virtual ~TextCall() = default;
  virtual void RunText() = 0;
};

// What does a stream's text work: the pipeline.
class StreamRunner {
 public:
  virtual ~StreamRunner() = default;
  virtual void RunText(const ResponseStreamRef& stream) = 0;
};

struct TextWorkerOptions {
  std::int32_t num_threads = 2;  // 0: work is done only by RunPending, for tests
  std::size_t num_tenants = 1;
  std::size_t queue_capacity = 0;  // per tenant: the permits of all who may post
};

// A fixed pool of threads for everything about text: templates, tokenising, block keys,
// detokenising, freeing request buffers. One queue per tenant, served in turn, so that one tenant's
// texts do not delay another's. Posting never fails and never allocates: the capacity is the sum of
// permits, an overflow is our bug. Threads: Post from any; Stop from the owner, who must outlive
// the pool's use of `runner`.
class TextWorkers {
 public:
  TextWorkers(const TextWorkerOptions& options, StreamRunner& runner);
  ~TextWorkers() { Stop(); }

  void Post(base::TenantId tenant, ResponseStreamRef stream);
  void Post(base::TenantId tenant, std::unique_ptr<TextCall> call);
  // Finishes what is queued, then joins. Idempotent; nothing may be posted from outside any more.
  void Stop();
  // Does queued work on the calling thread until there is none; for num_threads == 0.
  void RunPending();

 private:
  struct Job {
    ResponseStreamRef stream;
    std::unique_ptr<TextCall> call;
  };
  void Push(base::TenantId tenant, Job job);
  bool TryPopNext(Job& job) PAGODA_REQUIRES(mutex_);
  void Run(Job job);
  void ThreadLoop();

  StreamRunner& runner_;
  base::Mutex mutex_;
  base::CondVar ready_;
  std::vector<base::BoundedRing<Job>> queues_ PAGODA_GUARDED_BY(mutex_);
  std::size_t next_tenant_ PAGODA_GUARDED_BY(mutex_) = 0;
  bool stopping_ PAGODA_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace pagoda::server
