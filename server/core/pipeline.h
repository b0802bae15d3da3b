#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/keyed_hash.h"
#include "base/runtime/clock.h"
#include "base/runtime/gate.h"
#include "engine/output_sink.h"
#include "scheduler/tenant_config.h"
#include "server/core/admission_gate.h"
#include "server/core/auth/authenticator.h"
#include "server/core/call_input.h"
#include "server/core/engine_port.h"
#include "server/core/lifecycle.h"
#include "server/core/live_requests.h"
#include "server/core/request_names.h"
#include "server/core/response_stream.h"
#include "server/core/served_model.h"
#include "server/core/server_metrics.h"
#include "server/core/tenant_limits.h"
#include "server/core/text_workers.h"

namespace pagoda::server {

struct PipelineOptions {
  std::vector<TenantBounds> tenants;  // by TenantId
  // What each tenant's requests are checked against; none: the model's for all.
  std::vector<scheduler::ModelLimits> limits;
  // No tenants that a reload may bring have more inside together; 0: the first ones' sum.
  std::int64_t max_requests = 0;
  StreamBounds stream;
  std::int32_t num_text_threads = 2;  // 0: RunPendingText does the work, for tests
  std::int64_t max_text_calls = 64;   // Tokenize and Detokenize calls at once, in even shares
  std::int64_t slow_reader_grace_nanos = 10'000'000'000;
  // What a full step takes and computes. Fixed at the start: what is measured would tell a tenant
  // how busy the others are. 0 ns: no deadline that is still to come is too soon.
  std::int64_t step_nanos = 0;
  std::int32_t tokens_per_step = 1;
  base::Digest256 naming_secret{};  // random; from it follow request ids and drawn seeds
};

// Tenants as a reload wants them, by TenantId; names and their order stay.
struct TenantChange {
  std::vector<scheduler::TenantConfig> configs;
  std::vector<scheduler::ModelLimits> limits;
  std::vector<TenantBounds> bounds;
};

// How one tenant fares at the gate and behind it.
struct TenantReport {
  std::string name;
  std::int64_t num_refused = 0;  // for load
  scheduler::TenantStats stats;
};

// The way of a request through the server, the same for every door: check, permit, prepare on a
// text worker, engine, text again, reply. Knows neither gRPC nor HTTP. See docs/architecture.md
// for the drawing. Owner: main, which connects and starts the engine after making this and stops it
// before destroying this. Threads: Start, PostTextCall from any (doors); OutputSink's methods on
// the engine thread; Check... from the monitor; operators' commands from theirs.
class Pipeline final : public engine::OutputSink, private StreamOwner, private StreamRunner {
 public:
  Pipeline(PipelineOptions options, ServedModel model, const Authenticator& authenticator,
           Lifecycle& lifecycle, const base::ClockSource& clock);
  ~Pipeline() override;  // Requires: every request is closed.

  // Before the first Start. `engine` must outlive every request.
  void Connect(EnginePort& engine) { engine_ = &engine; }

  // Takes a request in, or says at once why not. The listener must live until it has taken the last
  // part.
  absl::StatusOr<ResponseStreamRef> Start(const Principal& caller, CallInput input,
                                          ReplyListener& listener);
  // Runs a piece of text work with a bound on how many there are.
  absl::Status PostTextCall(const Principal& caller, std::unique_ptr<TextCall> call);
  // One tiny generation through everything but the gate, before the server says that it is ready.
  // Blocks.
  absl::Status WarmUp();

  // Computes a prefix for the public lane, before the first request. Returns once it is there.
  // Blocks. Errors: the scheduler's, with its numbers.
  absl::Status AddPublicPrefix(PromptInput prompt, std::vector<base::TenantId> readers);

  // Nothing new is taken from now on. What is inside goes on.
  void CloseGate() { gate_.Close(); }
  bool WaitUntilEmpty(base::Instant time) { return gate_.WaitUntilEmpty(time); }
  // After this nothing is submitted any more: what is still being prepared ends with SHUTDOWN.
  // Before the engine is stopped.
  void CloseSubmissions();

  // Operators' commands, on one thread (pipeline_operations.cc). They block until the engine has
  // taken them.
  // Drops a tenant's cached blocks, or all. Returns how many. NotFound for a name that is nobody's.
  absl::StatusOr<std::int32_t> FlushPrefixCache(const std::optional<std::string>& tenant);
  // Nothing that is inside ends for it: until what is held fits the new tenants, only what fits
  // both is let in. Errors: the engine's, and then all is as it was.
  absl::Status ChangeTenants(TenantChange change);
  // Whether the last change holds; makes it hold at the gate once the engine says so.
  bool SettleTenants();

  std::vector<TenantReport> tenant_reports() const;  // any thread

  // Applies the slow-reader rule to every live request.
  void CheckReaders(base::Instant now);
  engine::EngineStats engine_stats() const { return engine_->stats(); }

  absl::Status CheckModelName(std::string_view name) const;
  const ServedModel& model() const { return model_; }
  const ServerMetrics& metrics() const { return metrics_; }
  std::int64_t num_live() const { return static_cast<std::int64_t>(live_.size()); }
  void RunPendingText() { workers_.RunPending(); }

  void OnTokens(const engine::TokenDelivery& delivery) override;
  void OnPromptScores(const engine::PromptScoreDelivery& delivery) override;
  void OnFinished(scheduler::FinishEvent event) override;
  void OnEngineFailed(const absl::Status& why) override;

 private:
  void PostText(ResponseStreamRef stream) override;
  void CancelInEngine(base::RequestId id, scheduler::FinishReason why) override;
  void PauseInEngine(base::RequestId id, bool paused) override;
  void OnClosed(ResponseStream& stream) override;
  void RunText(const ResponseStreamRef& stream) override;

  absl::StatusOr<ResponseStreamRef> TryStart(const Principal& caller, CallInput& input,
                                             ReplyListener& listener);
  absl::StatusOr<scheduler::NewRequest> MakeRequest(const Principal& caller, const CallInput& input,
                                                    const RequestName& name,
                                                    const scheduler::ModelLimits& limits) const;
  absl::Status CheckPromptSize(const PromptInput& prompt) const;
  absl::Status CheckDeadline(const scheduler::NewRequest& request) const;
  ResponseStreamRef MakeStream(const scheduler::NewRequest& request, const RequestName& name,
                               CallInput& input, ReplyListener& listener);
  absl::Status Prepare(ResponseStream& stream, Preparation& preparation);
  absl::Status Submit(ResponseStream& stream, scheduler::NewRequest request);
  absl::Status ComputeOwn(CallInput input,
                          std::optional<std::vector<base::TenantId>> public_readers);
  void Record(const ResponseStream& stream, const ReplyEnd& end);

  const PipelineOptions options_;
  const ServedModel model_;
  const Authenticator& authenticator_;
  Lifecycle& lifecycle_;
  const base::ClockSource& clock_;
  const std::size_t longest_token_bytes_;
  EnginePort* engine_ = nullptr;

  ServerMetrics metrics_;
  std::atomic<bool> engine_failed_{false};
  AdmissionGate gate_;
  TenantLimits limits_;
  base::Gate submissions_;
  std::vector<std::unique_ptr<base::Gate>> text_calls_;  // by tenant
  RequestNames names_;
  LiveRequests live_;
  // The operators' thread alone.
  std::vector<TenantBounds> bounds_;       // of the gate
  std::optional<TenantChange> unsettled_;  // accepted by the engine
  TextWorkers workers_;                    // last: its threads use everything above
};

}  // namespace pagoda::server
