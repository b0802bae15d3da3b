#pragma once

#include <optional>
#include <utility>
#include <vector>

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
  std::vector<scheduler::TenantStats> tenant_stats() const override {
    return engine_.tenant_stats();
  }
  absl::StatusOr<std::int32_t> FlushPrefixCache(std::optional<base::TenantId> tenant) override {
    return engine_.FlushPrefixCache(tenant);
  }
  absl::Status Reconfigure(std::vector<scheduler::TenantConfig> tenants) override {
    return engine_.Reconfigure(std::move(tenants));
  }
  absl::Status AddPublicPrefix(scheduler::NewRequest request,
                               std::vector<base::TenantId> readers) override {
    return engine_.AddPublicPrefix(std::move(request), std::move(readers));
  }

 private:
  engine::Engine& engine_;
};

}  // namespace pagoda::server
