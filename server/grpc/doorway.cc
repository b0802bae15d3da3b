#include "server/grpc/doorway.h"

namespace pagoda::server {
namespace {

class ArrivalWatch final : public ::grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit ArrivalWatch(Doorway& doorway) : doorway_(doorway) {}
  ::grpc::experimental::Interceptor* CreateServerInterceptor(
      ::grpc::experimental::ServerRpcInfo* /*info*/) override {
    doorway_.Arrived();
    return nullptr;
  }

 private:
  Doorway& doorway_;
};

}  // namespace

bool Doorway::LetIn() {
  const base::MutexLock lock(mutex_);
  if (closing_) return false;
  ++num_on_their_way_;
  return true;
}

void Doorway::Arrived() {
  const base::MutexLock lock(mutex_);
  --num_on_their_way_;
  if (num_on_their_way_ == 0) emptied_.NotifyAll();
}

void Doorway::Close() {
  const base::MutexLock lock(mutex_);
  closing_ = true;
}

bool Doorway::WaitUntilEmpty(std::chrono::steady_clock::time_point time) {
  const base::MutexLock lock(mutex_);
  while (num_on_their_way_ != 0) {
    if (!emptied_.WaitUntil(mutex_, time)) return num_on_their_way_ == 0;
  }
  return true;
}

std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface> MakeArrivalWatch(
    Doorway& doorway) {
  return std::make_unique<ArrivalWatch>(doorway);
}

}  // namespace pagoda::server
