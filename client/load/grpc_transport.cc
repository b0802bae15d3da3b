#include "client/load/grpc_transport.h"

#include <chrono>
#include <utility>

#include "client/connection.h"
#include "client/errors.h"

namespace pagoda::client {
namespace {

v1::GenerateRequest ToMessage(const PlannedRequest& request) {
  v1::GenerateRequest message;
  message.mutable_token_ids()->mutable_ids()->Add(request.prompt.begin(), request.prompt.end());
  message.mutable_sampling()->set_temperature(0);
  message.mutable_sampling()->set_seed(request.seed);
  message.mutable_stop()->set_max_tokens(request.output_tokens);
  message.mutable_stop()->set_ignore_eos(true);
  return message;
}

std::int64_t NumTokens(const v1::GenerateResponse& response) {
  std::int64_t count = 0;
  for (const v1::ChoiceDelta& delta : response.deltas()) count += delta.token_ids_size();
  return count;
}

}  // namespace

GrpcTransport::GrpcTransport(std::shared_ptr<grpc::Channel> channel, const base::ClockSource& clock,
                             std::int32_t num_callers, std::optional<double> deadline_seconds,
                             std::string model)
    : stub_(v1::InferenceService::NewStub(std::move(channel))),
      clock_(clock),
      deadline_seconds_(deadline_seconds),
      model_(std::move(model)),
      running_(static_cast<std::size_t>(num_callers), nullptr) {}

CallOutcome GrpcTransport::Call(std::int32_t caller, const PlannedRequest& request) {
  v1::GenerateRequest message = ToMessage(request);
  message.set_model(model_);
  grpc::ClientContext context;
  ApplyDeadline(deadline_seconds_, context);
  const auto slot = static_cast<std::size_t>(caller);
  {
    base::MutexLock lock(mutex_);
    running_[slot] = &context;
    if (cancelled_) context.TryCancel();
  }
  CallOutcome outcome;
  outcome.sent = clock_.Now();
  const auto stream = stub_->Generate(&context, message);
  v1::GenerateResponse response;
  bool finished = false;
  while (stream->Read(&response)) {
    outcome.tokens.Take(clock_.Now(), NumTokens(response));
    if (!response.has_finish()) continue;
    finished = true;
    outcome.receipt = response.finish().receipt();
  }
  const grpc::Status status = stream->Finish();
  outcome.ended = clock_.Now();
  {
    base::MutexLock lock(mutex_);
    running_[slot] = nullptr;
  }
  if (!status.ok()) {
    outcome.failure = DecodeError(status).code;
  } else if (!finished) {
    outcome.failure = "ENDED_WITHOUT_FINISH";
  }
  return outcome;
}

void GrpcTransport::CancelAll() {
  base::MutexLock lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* const context : running_) {
    if (context != nullptr) context->TryCancel();
  }
}

void SystemPacer::WaitUntil(base::Instant time) {
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(time.nanos())};
  base::MutexLock lock(mutex_);
  while (!broken_ && std::chrono::steady_clock::now() < until) changed_.WaitUntil(mutex_, until);
}

void SystemPacer::Break() {
  base::MutexLock lock(mutex_);
  broken_ = true;
  changed_.NotifyAll();
}

}  // namespace pagoda::client
