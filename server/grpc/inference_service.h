#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "base/runtime/clock.h"
#include "base/runtime/gate.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "server/core/front_desk.h"

namespace pagoda::server {

using RawMethods = v1::InferenceService::WithRawCallbackMethod_Generate<
    v1::InferenceService::WithRawCallbackMethod_Chat<
        v1::InferenceService::WithRawCallbackMethod_Tokenize<
            v1::InferenceService::WithRawCallbackMethod_Detokenize<
                v1::InferenceService::WithRawCallbackMethod_GetModel<
                    v1::InferenceService::WithRawCallbackMethod_ListModels<
                        v1::InferenceService::Service>>>>>>;

// pagoda.v1.InferenceService over the pipeline: converts, calls the core, maps the status; decides
// nothing. Messages come as bytes (see ParseMessage). Threads: gRPC's callbacks; nothing here
// blocks.
class InferenceService final : public RawMethods {
 public:
  using Bytes = ::grpc::ByteBuffer;
  using Context = ::grpc::CallbackServerContext;
  using StreamWriter = ::grpc::ServerWriteReactor<Bytes>;

  // Both must outlive the server.
  InferenceService(const FrontDesk& desk, const base::ClockSource& clock)
      : desk_(desk), clock_(clock) {}

  // Blocks until no Generate or Chat call is open; false when the time came first.
  bool WaitUntilNoStream(std::chrono::steady_clock::time_point time) {
    return streams_.WaitUntilEmpty(time);
  }

  StreamWriter* Generate(Context* context, const Bytes* request) override;
  StreamWriter* Chat(Context* context, const Bytes* request) override;
  ::grpc::ServerUnaryReactor* Tokenize(Context* context, const Bytes* request,
                                       Bytes* response) override;
  ::grpc::ServerUnaryReactor* Detokenize(Context* context, const Bytes* request,
                                         Bytes* response) override;
  ::grpc::ServerUnaryReactor* GetModel(Context* context, const Bytes* request,
                                       Bytes* response) override;
  ::grpc::ServerUnaryReactor* ListModels(Context* context, const Bytes* request,
                                         Bytes* response) override;

 private:
  template <typename Request>
  StreamWriter* StartStream(Context& context, const Bytes& bytes);

  const FrontDesk& desk_;
  const base::ClockSource& clock_;
  base::Gate streams_{std::numeric_limits<std::int64_t>::max()};  // bounded by permits, not here
};

}  // namespace pagoda::server
