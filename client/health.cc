#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/runtime/mutex.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/errors.h"
#include "client/progress.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace pagoda::client {
namespace {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenChecks{200};
constexpr std::chrono::seconds kCheckLimit{5};

// A pause that Ctrl-C ends, for good.
class Pause {
 public:
  void Break() PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    broken_ = true;
    changed_.NotifyAll();
  }
  // False when it was broken.
  bool Until(Clock::time_point time) PAGODA_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    while (!broken_ && Clock::now() < time) changed_.WaitUntil(mutex_, time);
    return !broken_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool broken_ PAGODA_GUARDED_BY(mutex_) = false;
};

struct Answer {
  ::grpc::Status status;
  HealthCheckResponse response;

  bool is_serving() const {
    return status.ok() && response.status() == HealthCheckResponse::SERVING;
  }
};

Answer CheckOnce(const Options& options, Health::Stub& stub) {
  Answer answer;
  HealthCheckRequest request;
  request.set_service(options.service);
  ::grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCheckLimit);
  answer.status = stub.Check(&context, request, &answer.response);
  return answer;
}

// Asks until the answer is SERVING or the time is up. Nothing that a server that is still starting
// may say ends it early.
Answer CheckUntilServing(const Options& options, Health::Stub& stub, Console& console) {
  const auto end = Clock::now() +
                   std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.wait_seconds));
  Pause pause;
  const Interrupts::Scope interrupt(console.interrupts, [&pause] { pause.Break(); });
  Progress progress(console, "waiting for the server to serve");
  while (true) {
    Answer answer = CheckOnce(options, stub);
    const auto next = Clock::now() + kBetweenChecks;
    if (answer.is_serving() || next > end || !pause.Until(next)) return answer;
  }
}

}  // namespace

int RunHealth(const Options& options, Console& console) {
  const auto channel = OpenChannel(options);
  if (!channel.ok()) return ReportError(options, LocalError(channel.status()), "health", console);
  const auto stub = Health::NewStub(*channel);
  const Answer answer = CheckUntilServing(options, *stub, console);
  if (!answer.status.ok()) {
    CallError error = DecodeError(answer.status);
    if (answer.status.error_code() == ::grpc::StatusCode::NOT_FOUND) {
      error.to_do = absl::StrCat("the server has no service of the name '", options.service,
                                 "'; leave --service out, or name pagoda.v1.InferenceService");
    }
    return ReportError(options, error, "health", console);
  }
  const std::string& name = HealthCheckResponse::ServingStatus_Name(answer.response.status());
  if (options.json) {
    console.out << nlohmann::json{{"status", name}}.dump() << std::endl;
  } else {
    console.out << name << std::endl;
  }
  return answer.is_serving() ? kExitOk : kExitFailed;
}

}  // namespace pagoda::client
