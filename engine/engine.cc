#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/runtime/mailbox.h"
#include "base/runtime/metric.h"
#include "base/runtime/mutex.h"
#include "base/status_macros.h"
#include "engine/engine_loop.h"
#include "engine/message.h"

namespace pagoda::engine {

struct Engine::State {
  State(const EngineOptions& options, std::unique_ptr<scheduler::Scheduler> scheduler_in,
        std::unique_ptr<Executor> executor_in, OutputSink& sink_in, const base::ClockSource& clock)
      : scheduler(std::move(scheduler_in)),
        executor(std::move(executor_in)),
        sink(sink_in),
        loop(options, *scheduler, *executor, sink_in, clock),
        tenants(scheduler->num_tenants()),
        mailbox(static_cast<std::size_t>(options.mailbox_capacity)),
        epochs(scheduler->num_tenants()),
        published_tenants(scheduler->num_tenants()) {
    messages.reserve(static_cast<std::size_t>(options.mailbox_capacity));
    Publish();
  }

  void Run();
  void HandleMail();
  void Publish();
  void Push(Message message);
  absl::StatusOr<CommandAnswer> Command(Message message);

  // Used by the engine thread alone while it runs.
  const std::unique_ptr<scheduler::Scheduler> scheduler;
  const std::unique_ptr<Executor> executor;
  OutputSink& sink;
  EngineLoop loop;
  std::vector<Message> messages;
  std::vector<scheduler::TenantStats> tenants;

  // Between the threads.
  base::Mailbox<Message> mailbox;
  std::atomic<bool> stop_requested = false;
  std::vector<std::atomic<std::uint64_t>> epochs;  // by tenant
  base::Counter num_accepted;
  base::Counter num_refused;  // came after the stop, or as a prefix that does not fit; finished by
                              // their submitters
  base::Mutex mutex;
  base::CondVar answered;
  EngineStats published PAGODA_GUARDED_BY(mutex);
  std::vector<scheduler::TenantStats> published_tenants PAGODA_GUARDED_BY(mutex);
  CommandAnswer answer PAGODA_GUARDED_BY(mutex);
  std::uint64_t last_ticket PAGODA_GUARDED_BY(mutex) = 0;

  std::thread thread;
};

// A message to an engine that has stopped has nothing left to change.
void Engine::State::Push(Message message) {
  if (mailbox.TryPush(std::move(message))) return;
  PAGODA_CHECK_MSG(mailbox.closed(), "more messages than permits");
}

void Engine::State::HandleMail() {
  mailbox.Drain(messages);
  for (Message& message : messages) loop.Handle(std::move(message));
  messages.clear();
}

void Engine::State::Publish() {
  const EngineStats now = loop.stats();
  for (std::uint32_t i = 0; i < epochs.size(); ++i) {
    epochs[i].store(scheduler->epoch(base::TenantId{i}), std::memory_order_release);
    tenants[i] = scheduler->tenant_stats(base::TenantId{i});
  }
  const CommandAnswer& last = loop.last_answer();
  base::MutexLock lock(mutex);
  published = now;
  std::ranges::copy(tenants, published_tenants.begin());
  if (answer.ticket == last.ticket) return;
  answer = last;
  answered.NotifyAll();
}

absl::StatusOr<CommandAnswer> Engine::State::Command(Message message) {
  std::uint64_t ticket = 0;
  {
    base::MutexLock lock(mutex);
    ticket = ++last_ticket;
  }
  message.ticket = ticket;
  if (!mailbox.TryPush(std::move(message))) {
    PAGODA_CHECK_MSG(mailbox.closed(), "more messages than permits");
    return absl::UnavailableError("the engine has stopped");
  }
  base::MutexLock lock(mutex);
  while (answer.ticket < ticket) answered.Wait(mutex);
  return answer;
}

void Engine::State::Run() {
  while (!stop_requested.load(std::memory_order_acquire)) {
    HandleMail();
    const EngineLoop::Turn turn = loop.RunTurn();
    Publish();
    if (turn == EngineLoop::Turn::kIdle) mailbox.WaitUntil(loop.NextWake());
  }
  // What was pushed before the mailbox closed is answered here, what comes later by its submitter.
  mailbox.Close();
  HandleMail();
  loop.EndAll(scheduler::FinishReason::kShutdown);
  Publish();
}

Engine::Engine(const EngineOptions& options, std::unique_ptr<scheduler::Scheduler> scheduler,
               std::unique_ptr<Executor> executor, OutputSink& sink, const base::ClockSource& clock)
    : state_(std::make_unique<State>(options, std::move(scheduler), std::move(executor), sink,
                                     clock)) {}

Engine::~Engine() { PAGODA_CHECK_MSG(!state_->thread.joinable(), "Stop the engine first"); }

void Engine::Start() {
  PAGODA_CHECK(!state_->thread.joinable());
  PAGODA_CHECK(!state_->mailbox.closed());
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

void Engine::Stop() {
  if (!state_->thread.joinable()) return;
  state_->stop_requested.store(true, std::memory_order_release);
  state_->mailbox.Wake();
  state_->thread.join();
}

void Engine::Submit(scheduler::NewRequest request) {
  state_->num_accepted.Add();
  Message message{.kind = Message::Kind::kSubmit, .request = std::move(request)};
  if (state_->mailbox.TryPush(std::move(message))) return;
  // NOLINTBEGIN(bugprone-use-after-move): a mailbox that refuses leaves the message as it was.
  PAGODA_CHECK_MSG(state_->mailbox.closed(), "more messages than permits");
  state_->num_refused.Add();
  state_->sink.OnFinished({.request = *std::move(message.request),
                           .reason = scheduler::FinishReason::kShutdown,
                           .receipt = {}});
  // NOLINTEND(bugprone-use-after-move)
}

void Engine::Cancel(base::RequestId id, scheduler::FinishReason reason) {
  state_->Push({.kind = Message::Kind::kCancel, .id = id, .reason = reason});
}

void Engine::SetPaused(base::RequestId id, bool paused) {
  state_->Push({.kind = Message::Kind::kSetPaused, .id = id, .paused = paused});
}

absl::StatusOr<std::int32_t> Engine::FlushPrefixCache(std::optional<base::TenantId> tenant) {
  PAGODA_ASSIGN_OR_RETURN(
      const CommandAnswer answer,
      state_->Command({.kind = Message::Kind::kFlushPrefixCache, .tenant = tenant}));
  return answer.blocks_dropped;
}

absl::Status Engine::Reconfigure(std::vector<scheduler::TenantConfig> tenants) {
  PAGODA_ASSIGN_OR_RETURN(
      const CommandAnswer answer,
      state_->Command({.kind = Message::Kind::kReconfigure, .tenants = std::move(tenants)}));
  return answer.status;
}

absl::Status Engine::AddPublicPrefix(scheduler::NewRequest request,
                                     std::vector<base::TenantId> readers) {
  state_->num_accepted.Add();
  const absl::StatusOr<CommandAnswer> answer =
      state_->Command({.kind = Message::Kind::kAddPublicPrefix,
                       .request = std::move(request),
                       .readers = std::move(readers)});
  absl::Status status = answer.ok() ? answer->status : answer.status();
  if (!status.ok()) state_->num_refused.Add();
  return status;
}

std::uint64_t Engine::epoch(base::TenantId tenant) const {
  PAGODA_CHECK(tenant.value() < state_->epochs.size());
  return state_->epochs[tenant.value()].load(std::memory_order_acquire);
}

std::vector<scheduler::TenantStats> Engine::tenant_stats() const {
  std::vector<scheduler::TenantStats> copy(state_->epochs.size());
  base::MutexLock lock(state_->mutex);
  std::ranges::copy(state_->published_tenants, copy.begin());
  return copy;
}

EngineStats Engine::stats() const {
  EngineStats stats;
  {
    base::MutexLock lock(state_->mutex);
    stats = state_->published;
  }
  // Read after the published ones, so that no request is finished before it was accepted.
  stats.num_finished += state_->num_refused.value();
  stats.num_accepted = state_->num_accepted.value();
  return stats;
}

}  // namespace pagoda::engine
