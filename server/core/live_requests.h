#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/runtime/mutex.h"
#include "server/core/response_stream.h"

namespace pagoda::server {

// Every stream that is not closed, by id: how the engine's events find theirs. Threads: any.
// Nothing is allocated or freed under the lock: nodes are made before it and let go after it.
class LiveRequests {
 public:
  explicit LiveRequests(std::size_t capacity) : capacity_(capacity) { streams_.reserve(capacity); }

  void Insert(ResponseStreamRef stream) PAGODA_EXCLUDES(mutex_);
  // Null when it is closed or never was.
  ResponseStreamRef Find(base::RequestId id) const PAGODA_EXCLUDES(mutex_);
  void Erase(base::RequestId id) PAGODA_EXCLUDES(mutex_);
  // All of them, in no order.
  std::vector<ResponseStreamRef> Snapshot() const PAGODA_EXCLUDES(mutex_);
  std::size_t size() const PAGODA_EXCLUDES(mutex_);

 private:
  using Map = std::unordered_map<base::RequestId, ResponseStreamRef>;
  const std::size_t capacity_;
  mutable base::Mutex mutex_;
  Map streams_ PAGODA_GUARDED_BY(mutex_);
};

}  // namespace pagoda::server
