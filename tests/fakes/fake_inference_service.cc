#include "tests/fakes/fake_inference_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace pagoda::fakes {
namespace {

// A synchronous handler has no event for "cancelled", so it looks again and again.
constexpr std::chrono::milliseconds kBetweenLooks{5};

}  // namespace

FakeInferenceService::FakeInferenceService(Script script)
    : script_(std::move(script)), health_(*this) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  builder.RegisterService(&health_);
  server_ = builder.BuildAndStart();
  PAGODA_CHECK(server_ != nullptr);
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeInferenceService::~FakeInferenceService() {
  server_->Shutdown(std::chrono::system_clock::now());  // cancels what still waits
  server_->Wait();
}

std::vector<v1::GenerateRequest> FakeInferenceService::generate_requests() {
  base::MutexLock lock(mutex_);
  return generate_requests_;
}

std::vector<v1::ChatRequest> FakeInferenceService::chat_requests() {
  base::MutexLock lock(mutex_);
  return chat_requests_;
}

grpc::Status FakeInferenceService::Play(grpc::ServerContext& context,
                                        grpc::ServerWriter<v1::GenerateResponse>& writer) {
  for (const v1::GenerateResponse& reply : script_.replies) writer.Write(reply);
  if (!script_.waits_for_cancel) return script_.status;
  base::MutexLock lock(mutex_);
  while (!context.IsCancelled()) {
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kBetweenLooks);
  }
  return grpc::Status::CANCELLED;
}

grpc::Status FakeInferenceService::Generate(grpc::ServerContext* context,
                                            const v1::GenerateRequest* request,
                                            grpc::ServerWriter<v1::GenerateResponse>* writer) {
  {
    base::MutexLock lock(mutex_);
    generate_requests_.push_back(*request);
  }
  return Play(*context, *writer);
}

grpc::Status FakeInferenceService::Chat(grpc::ServerContext* context,
                                        const v1::ChatRequest* request,
                                        grpc::ServerWriter<v1::GenerateResponse>* writer) {
  {
    base::MutexLock lock(mutex_);
    chat_requests_.push_back(*request);
  }
  return Play(*context, *writer);
}

grpc::Status FakeInferenceService::Tokenize(grpc::ServerContext*, const v1::TokenizeRequest*,
                                            v1::TokenizeResponse* response) {
  *response = script_.tokens;
  return script_.status;
}

grpc::Status FakeInferenceService::GetModel(grpc::ServerContext*, const v1::GetModelRequest*,
                                            v1::Model* response) {
  *response = script_.model;
  return script_.status;
}

grpc::Status FakeInferenceService::FakeHealth::Check(
    grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest*,
    grpc::health::v1::HealthCheckResponse* response) {
  base::MutexLock lock(owner_.mutex_);
  const auto& script = owner_.script_.health;
  PAGODA_CHECK(!script.empty());
  response->set_status(script[std::min(owner_.num_checks_++, script.size() - 1)]);
  return owner_.script_.health_status;
}

}  // namespace pagoda::fakes
