#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/runtime/clock.h"
#include "engine/engine.h"
#include "scheduler/scheduler_config.h"
#include "server/config/server_config.h"
#include "server/core/auth/authenticator.h"
#include "server/core/front_desk.h"
#include "server/core/live_engine.h"
#include "server/core/monitor.h"
#include "server/core/operations.h"
#include "server/core/pipeline.h"
#include "server/journal_dumps.h"
#include "server/public_prefixes.h"

namespace pagoda::server {

// Everything behind the doors, wired: model, scheduler, engine, pipeline, monitor. Owner and
// thread: main.
class ServerStack {
 public:
  // Loads the model and takes the memory for its KV pool, both logged with their numbers. `desk`
  // and `clock` must outlive this. `stop_asked` is asked between the steps of the load, tensors
  // among them: true ends it with Cancelled. Errors say what was asked, what was found and what to
  // do.
  static absl::StatusOr<std::unique_ptr<ServerStack>> Load(const ServerConfig& config,
                                                           FrontDesk& desk,
                                                           const base::ClockSource& clock,
                                                           const std::function<bool()>& stop_asked);
  // Not wired yet: for Load.
  ServerStack(const ServerConfig& config, FrontDesk& desk, const base::ClockSource& clock);
  ~ServerStack();

  // What the start would refuse of its device, model, memory, tenants and public prefixes, found
  // before anything is bound or packed: from the headers of the model's files. `available_bytes` is
  // what this process can still take (base::AvailableMemory). A pool of --kv-cache-memory auto is
  // estimated; Load checks again.
  static absl::Status CheckStart(const ServerConfig& config, std::int64_t available_bytes);
  // What a start reads beyond headers: vocabulary, chat template, tensors that must be equal.
  static absl::Status CheckContent(const ServerConfig& config);

  // Starts the engine, computes the public prefixes, runs one tiny generation and opens the desk.
  absl::Status Start();
  // Takes nothing new, lets what is inside finish until `deadline`, ends the rest with SHUTDOWN.
  // Blocks.
  void Drain(base::Instant deadline);
  // Reads the file of tenants again: credentials, weights, reserves, limits. Replies under way go
  // on; an error, with its reason, changes nothing. After Start; on the operators' thread.
  absl::StatusOr<ReloadReport> ReloadTenants(Authenticator& authenticator);
  // FailedPrecondition without --journal-dir.
  absl::StatusOr<JournalReport> DumpJournal();

 private:
  struct Parts;
  void Wire(Parts parts);

  const ServerConfig& config_;
  scheduler::SchedulerConfig scheduling_;  // of the tenants that hold
  std::vector<EncodedPrefix> prefixes_;
  FrontDesk& desk_;
  const base::ClockSource& clock_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<engine::Journal> journal_;  // null: none is kept, nor written
  std::unique_ptr<JournalDumps> journal_dumps_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<LiveEngine> port_;
  std::unique_ptr<Monitor> monitor_;
};

}  // namespace pagoda::server
