#include "server/grpc/health_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pagoda/v1/inference.grpc.pb.h"

namespace pagoda::server {

// One Watch call. Kept by the service until gRPC is done with it, and by whoever is about to speak
// to it. While `writing_` is set there is no Finish, so the call is alive for whoever set it.
class HealthService::Watcher final : public ::grpc::ServerWriteReactor<Response> {
 public:
  Watcher(HealthService& service, std::string name) : service_(service), name_(std::move(name)) {}

  // Writes the state if it differs from the last one written.
  void Refresh() {
    {
      base::MutexLock lock(mutex_);
      if (writing_ || finished_) return;  // OnWriteDone looks again
      writing_ = true;
    }
    WriteOrRest();
  }

  void FinishSoon() {
    {
      base::MutexLock lock(mutex_);
      finish_wanted_ = true;
      if (writing_ || finished_) return;
      finished_ = true;
    }
    Finish(::grpc::Status::OK);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      base::MutexLock lock(mutex_);
      finish_wanted_ = true;
    }
    WriteOrRest();
  }
  void OnCancel() override { FinishSoon(); }
  void OnDone() override { service_.Remove(this); }

 private:
  // Requires: this thread holds `writing_`.
  void WriteOrRest() {
    const Response::ServingStatus now = service_.StatusOf(name_);
    bool finish = false;
    {
      base::MutexLock lock(mutex_);
      finish = finish_wanted_;
      if (finish || written_ == now) {
        writing_ = false;
        finished_ = finish;
        if (!finish) return;
      } else {
        written_ = now;
      }
    }
    if (finish) {
      Finish(::grpc::Status::OK);
    } else {
      response_.set_status(now);
      StartWrite(&response_);
    }
  }

  HealthService& service_;
  const std::string name_;
  Response response_;
  base::Mutex mutex_;
  std::optional<Response::ServingStatus> written_ PAGODA_GUARDED_BY(mutex_);
  bool writing_ PAGODA_GUARDED_BY(mutex_) = false;
  bool finish_wanted_ PAGODA_GUARDED_BY(mutex_) = false;
  bool finished_ PAGODA_GUARDED_BY(mutex_) = false;
};

HealthService::Response::ServingStatus HealthService::StatusOf(const std::string& service) const {
  if (!service.empty() && service != v1::InferenceService::service_full_name()) {
    return Response::SERVICE_UNKNOWN;
  }
  return lifecycle_.healthy() ? Response::SERVING : Response::NOT_SERVING;
}

::grpc::ServerUnaryReactor* HealthService::Check(::grpc::CallbackServerContext* context,
                                                 const Request* request, Response* response) {
  ::grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const Response::ServingStatus status = StatusOf(request->service());
  response->set_status(status);
  reactor->Finish(status == Response::SERVICE_UNKNOWN
                      ? ::grpc::Status(::grpc::StatusCode::NOT_FOUND, "unknown service")
                      : ::grpc::Status::OK);
  return reactor;
}

::grpc::ServerWriteReactor<HealthService::Response>* HealthService::Watch(
    ::grpc::CallbackServerContext*, const Request* request) {
  auto watcher = std::make_shared<Watcher>(*this, request->service());
  bool finishing = false;
  {
    base::MutexLock lock(mutex_);
    watchers_.push_back(watcher);
    finishing = finishing_;
  }
  if (finishing) {
    watcher->FinishSoon();
  } else {
    watcher->Refresh();
  }
  return watcher.get();
}

std::vector<std::shared_ptr<HealthService::Watcher>> HealthService::Watchers() const {
  base::MutexLock lock(mutex_);
  return watchers_;
}

void HealthService::OnHealthChanged() {
  for (const auto& watcher : Watchers()) watcher->Refresh();
}

void HealthService::FinishWatches() {
  {
    base::MutexLock lock(mutex_);
    finishing_ = true;
  }
  for (const auto& watcher : Watchers()) watcher->FinishSoon();
}

void HealthService::Remove(const Watcher* watcher) {
  std::shared_ptr<Watcher> last;  // let go of after the lock
  base::MutexLock lock(mutex_);
  const auto found =
      std::ranges::find_if(watchers_, [watcher](const auto& w) { return w.get() == watcher; });
  if (found == watchers_.end()) return;
  last = std::move(*found);
  watchers_.erase(found);
}

}  // namespace pagoda::server
