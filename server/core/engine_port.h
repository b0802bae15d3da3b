#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "engine/engine.h"
#include "scheduler/events.h"
#include "scheduler/request.h"
#include "scheduler/tenant_config.h"

namespace pagoda::server {

// The engine as the pipeline uses it: live_engine.h over the real one, a scripted one in tests.
// Threads: any.
class EnginePort {
 public:
  virtual ~EnginePort() = default;
  // Requires: the caller holds a permit and the engine has not been stopped.
  virtual void Submit(scheduler::NewRequest request) = 0;
  virtual void Cancel(base::RequestId id, scheduler::FinishReason why) = 0;
  virtual void SetPaused(base::RequestId id, bool paused) = 0;
  virtual std::uint64_t epoch(base::TenantId tenant) const = 0;
  virtual engine::EngineStats stats() const = 0;
  virtual std::vector<scheduler::TenantStats> tenant_stats() const = 0;

  // Operator's commands, as in engine.h: one at a time, and these block.
  virtual absl::StatusOr<std::int32_t> FlushPrefixCache(std::optional<base::TenantId> tenant) = 0;
  virtual absl::Status Reconfigure(std::vector<scheduler::TenantConfig> tenants) = 0;
  virtual absl::Status AddPublicPrefix(scheduler::NewRequest request,
                                       std::vector<base::TenantId> readers) = 0;
};

}  // namespace pagoda::server
