#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/clock.h"
#include "base/runtime/mutex.h"
#include "client/load/load_transport.h"
#include "pagoda/v1/inference.grpc.pb.h"

namespace pagoda::client {

// Sends a load to a server over one channel. Replies have the length that was planned: EOS does not
// end them. Threads: as LoadTransport says.
class GrpcTransport final : public LoadTransport {
 public:
  // `deadline_seconds`: of each request. `model`: by name; empty: the loaded one.
  GrpcTransport(std::shared_ptr<grpc::Channel> channel, const base::ClockSource& clock,
                std::int32_t num_callers, std::optional<double> deadline_seconds,
                std::string model);

  CallOutcome Call(std::int32_t caller, const PlannedRequest& request) override
      PAGODA_EXCLUDES(mutex_);
  void CancelAll() override PAGODA_EXCLUDES(mutex_);

 private:
  const std::unique_ptr<v1::InferenceService::Stub> stub_;
  const base::ClockSource& clock_;
  const std::optional<double> deadline_seconds_;
  const std::string model_;

  base::Mutex mutex_;
  bool cancelled_ PAGODA_GUARDED_BY(mutex_) = false;
  std::vector<grpc::ClientContext*> running_ PAGODA_GUARDED_BY(mutex_);  // by caller; null: none
};

// The machine's clock, with a wait that Break ends.
class SystemPacer final : public LoadPacer {
 public:
  base::Instant Now() const override { return base::SystemClock().Now(); }
  void WaitUntil(base::Instant time) override PAGODA_EXCLUDES(mutex_);
  void Break() override PAGODA_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool broken_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::client
