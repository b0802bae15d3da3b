#pragma once

#include <utility>

#include "engine/engine.h"
#include "server/core/engine_port.h"

namespace pagoda::server {

// The real engine behind the port. `engine` must outlive it. Threads: any.
class LiveEngine final : public EnginePort {
 public:
  explicit LiveEngine(engine::Engine& engine) : engine_(engine) {}

  void Submit(scheduler::NewRequest request) override { engine_.Submit(std::move(request)); }
  void Cancel(base::RequestId id, scheduler::FinishReason why) override { engine_.Cancel(id, why); }
  void SetPaused(base::RequestId id, bool paused) override { engine_.SetPaused(id, paused); }
  std::uint64_t epoch(base::TenantId tenant) const override { return engine_.epoch(tenant); }
  engine::EngineStats stats() const override { return engine_.stats(); }

 private:
  engine::Engine& engine_;
};

}  // namespace pagoda::server
