#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/runtime/mutex.h"

namespace pagoda::server {

enum class ServerState : std::uint8_t { kLoading, kServing, kDraining, kStopped };

// Hears of every change of what health should say. Called without locks, from any thread; reads the
// truth back, since two changes may be told in either order.
class HealthListener {
 public:
  virtual ~HealthListener() = default;
  virtual void OnHealthChanged() = 0;
};

// Where the server is in its life (loading -> serving -> draining -> stopped, forwards only) and
// whether its engine is well. Ready is shown only while both are good. Threads: any.
class Lifecycle {
 public:
  // Moves forward; a step back, or to the same state, is ignored. Returns whether it moved.
  bool MoveTo(ServerState state) PAGODA_EXCLUDES(mutex_);
  // For good: no new request is taken and health stays down.
  void SetEngineFailed() PAGODA_EXCLUDES(mutex_);
  // While no step completes although work waits. Requests are still taken, health is down.
  void SetEngineStalled(bool stalled) PAGODA_EXCLUDES(mutex_);

  // OK while new requests are taken; else UNAVAILABLE with the reason.
  absl::Status CheckAccepting() const PAGODA_EXCLUDES(mutex_);
  bool healthy() const PAGODA_EXCLUDES(mutex_);
  ServerState state() const PAGODA_EXCLUDES(mutex_);

  // One listener, or null to take it away; it hears of changes from now on.
  void SetListener(HealthListener* listener) PAGODA_EXCLUDES(mutex_);

 private:
  void Tell() PAGODA_EXCLUDES(mutex_);

  mutable base::Mutex mutex_;
  ServerState state_ PAGODA_GUARDED_BY(mutex_) = ServerState::kLoading;
  bool engine_failed_ PAGODA_GUARDED_BY(mutex_) = false;
  bool engine_stalled_ PAGODA_GUARDED_BY(mutex_) = false;
  HealthListener* listener_ PAGODA_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace pagoda::server
