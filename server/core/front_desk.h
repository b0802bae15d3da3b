#pragma once

#include <atomic>

#include "absl/status/statusor.h"
#include "base/runtime/metric.h"
#include "base/status_macros.h"
#include "server/core/auth/authenticator.h"
#include "server/core/lifecycle.h"
#include "server/core/pipeline.h"
#include "server/core/refusal.h"

namespace pagoda::server {

// What doors hold: open from the start, while the pipeline comes once the model is loaded. Threads:
// any.
class FrontDesk {
 public:
  // `authenticator` must outlive this: nobody gets behind a door without being asked by it.
  explicit FrontDesk(const Authenticator& authenticator) : authenticator_(authenticator) {}

  const Authenticator& authenticator() const { return authenticator_; }
  Lifecycle& lifecycle() { return lifecycle_; }
  const Lifecycle& lifecycle() const { return lifecycle_; }

  // A call that no door let in.
  void CountUnauthenticated() { unauthenticated_.Add(); }
  std::int64_t num_unauthenticated() const { return unauthenticated_.value(); }

  // `pipeline` must outlive every door.
  void Install(Pipeline& pipeline) { pipeline_.store(&pipeline, std::memory_order_release); }

  // The pipeline once there is one, whatever the lifecycle says; null before.
  Pipeline* installed() const { return pipeline_.load(std::memory_order_acquire); }

  // The pipeline, when new requests are taken; else UNAVAILABLE with the reason.
  absl::StatusOr<Pipeline*> Accepting() const {
    PAGODA_RETURN_IF_ERROR(lifecycle_.CheckAccepting());
    Pipeline* pipeline = installed();
    if (pipeline == nullptr) return Unavailable(reason::kLoading, "the model is being loaded");
    return pipeline;
  }

 private:
  const Authenticator& authenticator_;
  Lifecycle lifecycle_;
  base::Counter unauthenticated_;
  std::atomic<Pipeline*> pipeline_{nullptr};
};

}  // namespace pagoda::server
