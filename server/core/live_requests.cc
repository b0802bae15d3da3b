#include "server/core/live_requests.h"

#include <utility>

#include "base/check.h"

namespace pagoda::server {

void LiveRequests::Insert(ResponseStreamRef stream) {
  Map one;
  const base::RequestId id = stream->identity().id;
  one.emplace(id, std::move(stream));
  Map::node_type node = one.extract(id);
  base::MutexLock lock(mutex_);
  PAGODA_CHECK_MSG(streams_.size() < capacity_, "more live requests than permits");
  PAGODA_CHECK(streams_.insert(std::move(node)).inserted);
}

ResponseStreamRef LiveRequests::Find(base::RequestId id) const {
  base::MutexLock lock(mutex_);
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

void LiveRequests::Erase(base::RequestId id) {
  Map::node_type node;
  base::MutexLock lock(mutex_);
  node = streams_.extract(id);
}

std::vector<ResponseStreamRef> LiveRequests::Snapshot() const {
  std::vector<ResponseStreamRef> all;
  all.reserve(capacity_);
  base::MutexLock lock(mutex_);
  for (const auto& [id, stream] : streams_) all.push_back(stream);
  return all;
}

std::size_t LiveRequests::size() const {
  base::MutexLock lock(mutex_);
  return streams_.size();
}

}  // namespace pagoda::server
