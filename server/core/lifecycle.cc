#include "server/core/lifecycle.h"

#include "server/core/refusal.h"

namespace pagoda::server {

bool Lifecycle::MoveTo(ServerState state) {
  {
    base::MutexLock lock(mutex_);
    if (state <= state_) return false;
    state_ = state;
  }
  Tell();
  return true;
}

void Lifecycle::SetEngineFailed() {
  {
    base::MutexLock lock(mutex_);
    if (engine_failed_) return;
    engine_failed_ = true;
  }
  Tell();
}

void Lifecycle::SetEngineStalled(bool stalled) {
  {
    base::MutexLock lock(mutex_);
    if (engine_stalled_ == stalled) return;
    engine_stalled_ = stalled;
  }
  Tell();
}

absl::Status Lifecycle::CheckAccepting() const {
  ServerState state = ServerState::kLoading;
  bool failed = false;
  {
    base::MutexLock lock(mutex_);
    state = state_;
    failed = engine_failed_;
  }
  if (state == ServerState::kLoading) {
    return Unavailable(reason::kLoading, "the model is still being loaded; try again later");
  }
  if (state != ServerState::kServing) {
    return Unavailable(reason::kDraining, "the server is draining and takes no new requests");
  }
  if (failed) {
    return Unavailable(reason::kEngineFailed,
                       "the engine has failed and the server must be restarted");
  }
  return absl::OkStatus();
}

bool Lifecycle::healthy() const {
  base::MutexLock lock(mutex_);
  return state_ == ServerState::kServing && !engine_failed_ && !engine_stalled_;
}

ServerState Lifecycle::state() const {
  base::MutexLock lock(mutex_);
  return state_;
}

void Lifecycle::SetListener(HealthListener* listener) {
  base::MutexLock lock(mutex_);
  listener_ = listener;
}

void Lifecycle::Tell() {
  HealthListener* listener = nullptr;
  {
    base::MutexLock lock(mutex_);
    listener = listener_;
  }
  if (listener != nullptr) listener->OnHealthChanged();
}

}  // namespace pagoda::server
