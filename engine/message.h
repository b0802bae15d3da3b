#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "scheduler/events.h"
#include "scheduler/request.h"
#include "scheduler/tenant_config.h"

namespace pagoda::engine {

// What other threads tell the engine. Move-only; the request travels inside.
struct Message {
  enum class Kind : std::uint8_t {
    kNone,
    kSubmit,
    kAddPublicPrefix,
    kCancel,
    kSetPaused,
    kFlushPrefixCache,
    kReconfigure
  };
  Kind kind = Kind::kNone;
  std::optional<scheduler::NewRequest> request = {};  // of kSubmit and kAddPublicPrefix
  base::RequestId id = {};                            // of kCancel and kSetPaused
  scheduler::FinishReason reason = scheduler::FinishReason::kCancelled;
  bool paused = false;
  std::uint64_t ticket = 0;                           // of an operator's command; its answer has it
  std::optional<base::TenantId> tenant = {};          // of kFlushPrefixCache; none: all
  std::vector<scheduler::TenantConfig> tenants = {};  // of kReconfigure
  std::vector<base::TenantId> readers = {};           // of kAddPublicPrefix; none: all
};

// What became of an operator's command.
struct CommandAnswer {
  std::uint64_t ticket = 0;
  std::int32_t blocks_dropped = 0;  // by a flush
  absl::Status status;              // of a reconfiguration or a public prefix
};

}  // namespace pagoda::engine
