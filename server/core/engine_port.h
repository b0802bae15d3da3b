#pragma once

#include <cstdint>

#include "base/ids.h"
#include "engine/engine.h"
#include "scheduler/events.h"
#include "scheduler/request.h"

namespace pagoda::server {

// The engine as the pipeline uses it: live_engine.h over the real one, a scripted one in tests.
// Threads: any. Nothing blocks.
class EnginePort {
 public:
  virtual ~EnginePort() = default;
  // Requires: the caller holds a permit and the engine has not been stopped.
  virtual void Submit(scheduler::NewRequest request) = 0;
  virtual void Cancel(base::RequestId id, scheduler::FinishReason why) = 0;
  virtual void SetPaused(base::RequestId id, bool paused) = 0;
  virtual std::uint64_t epoch(base::TenantId tenant) const = 0;
  virtual engine::EngineStats stats() const = 0;
};

}  // namespace pagoda::server
