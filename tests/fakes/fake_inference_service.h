#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "base/runtime/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "pagoda/v1/inference.grpc.pb.h"

namespace pagoda::fakes {

// A server on a loopback port of its own that answers from a script: each reply in order, then
// `status`. It keeps what it was asked. Set the script before the first call. Threads: gRPC's own
// call it; the test reads what was asked through copies.
class FakeInferenceService final : public v1::InferenceService::Service {
 public:
  struct Script {
    std::vector<v1::GenerateResponse> replies;
    bool waits_for_cancel = false;  // after the replies, instead of ending
    grpc::Status status;
    v1::TokenizeResponse tokens;
    v1::Model model;
    // What health says, one after the other; the last one stays.
    std::vector<grpc::health::v1::HealthCheckResponse::ServingStatus> health;
    grpc::Status health_status;
  };

  explicit FakeInferenceService(Script script);
  ~FakeInferenceService() override;

  const std::string& address() const { return address_; }
  std::vector<v1::GenerateRequest> generate_requests() PAGODA_EXCLUDES(mutex_);
  std::vector<v1::ChatRequest> chat_requests() PAGODA_EXCLUDES(mutex_);

  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        grpc::ServerWriter<v1::GenerateResponse>* writer) override;
  grpc::Status Chat(grpc::ServerContext* context, const v1::ChatRequest* request,
                    grpc::ServerWriter<v1::GenerateResponse>* writer) override;
  grpc::Status Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::Model* response) override;

 private:
  class FakeHealth final : public grpc::health::v1::Health::Service {
   public:
    explicit FakeHealth(FakeInferenceService& owner) : owner_(owner) {}
    grpc::Status Check(grpc::ServerContext* context,
                       const grpc::health::v1::HealthCheckRequest* request,
                       grpc::health::v1::HealthCheckResponse* response) override;

   private:
    FakeInferenceService& owner_;
  };

  grpc::Status Play(grpc::ServerContext& context, grpc::ServerWriter<v1::GenerateResponse>& writer);

  const Script script_;
  FakeHealth health_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<v1::GenerateRequest> generate_requests_ PAGODA_GUARDED_BY(mutex_);
  std::vector<v1::ChatRequest> chat_requests_ PAGODA_GUARDED_BY(mutex_);
  std::size_t num_checks_ PAGODA_GUARDED_BY(mutex_) = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace pagoda::fakes
