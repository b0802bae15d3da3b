#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/runtime/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/core/lifecycle.h"

namespace pagoda::server {

// grpc.health.v1 over the lifecycle, for "" and pagoda.v1.InferenceService. Written here because
// the library's own service says SERVING for "" from the moment the port opens until it is told
// otherwise. Owner: the gRPC server. Threads: gRPC's callbacks and whoever changes the lifecycle. A
// Watch gets the state at once and then each change; one that is taken back before it was written
// is not seen.
class HealthService final : public ::grpc::health::v1::Health::CallbackService,
                            public HealthListener {
 public:
  using Request = ::grpc::health::v1::HealthCheckRequest;
  using Response = ::grpc::health::v1::HealthCheckResponse;

  explicit HealthService(const Lifecycle& lifecycle) : lifecycle_(lifecycle) {}

  ::grpc::ServerUnaryReactor* Check(::grpc::CallbackServerContext* context, const Request* request,
                                    Response* response) override;
  ::grpc::ServerWriteReactor<Response>* Watch(::grpc::CallbackServerContext* context,
                                              const Request* request) override;

  void OnHealthChanged() override PAGODA_EXCLUDES(mutex_);
  // Ends every Watch, now and from now on, so that the server can shut down.
  void FinishWatches() PAGODA_EXCLUDES(mutex_);

 private:
  class Watcher;
  Response::ServingStatus StatusOf(const std::string& service) const;
  std::vector<std::shared_ptr<Watcher>> Watchers() const PAGODA_EXCLUDES(mutex_);
  void Remove(const Watcher* watcher) PAGODA_EXCLUDES(mutex_);

  const Lifecycle& lifecycle_;
  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<Watcher>> watchers_ PAGODA_GUARDED_BY(mutex_);
  bool finishing_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::server
