#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "scheduler/events.h"
#include "scheduler/request.h"

namespace pagoda::engine {

// What other threads tell the engine. Move-only; the request travels inside.
struct Message {
  enum class Kind : std::uint8_t { kNone, kSubmit, kCancel, kSetPaused, kFlushPrefixCache };
  Kind kind = Kind::kNone;
  std::optional<scheduler::NewRequest> request = {};  // of kSubmit
  base::RequestId id = {};                            // of kCancel and kSetPaused
  scheduler::FinishReason reason = scheduler::FinishReason::kCancelled;
  bool paused = false;
  std::optional<base::TenantId> tenant = {};  // of kFlushPrefixCache; none: all
};

}  // namespace pagoda::engine
