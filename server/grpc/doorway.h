#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/runtime/mutex.h"

namespace pagoda::server {

// Between a listener and its services: whether the door is closing, and how many calls it has let
// in that no service has met yet. gRPC's own shutdown answers CANCELLED to such a call, so the
// shutdown waits for them. Owner: the server of the door. Threads: any.
class Doorway {
 public:
  // False from Close on: the call must be refused. Otherwise it is on its way until Arrived.
  bool LetIn() PAGODA_EXCLUDES(mutex_);
  void Arrived() PAGODA_EXCLUDES(mutex_);
  void Close() PAGODA_EXCLUDES(mutex_);
  // Whether none is on its way. A call that its client gives up on the way never arrives, hence the
  // time.
  bool WaitUntilEmpty(std::chrono::steady_clock::time_point time) PAGODA_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  base::CondVar emptied_;
  bool closing_ PAGODA_GUARDED_BY(mutex_) = false;
  std::int64_t num_on_their_way_ PAGODA_GUARDED_BY(mutex_) = 0;
};

// Tells `doorway` of each call that has met its service; gRPC asks it once a call. `doorway` must
// outlive the server.
std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface> MakeArrivalWatch(
    Doorway& doorway);

}  // namespace pagoda::server
