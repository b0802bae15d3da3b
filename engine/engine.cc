#include "engine/engine.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/runtime/mailbox.h"
#include "base/runtime/metric.h"
#include "base/runtime/mutex.h"
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
        mailbox(static_cast<std::size_t>(options.mailbox_capacity)),
        epochs(scheduler->num_tenants()) {
    messages.reserve(static_cast<std::size_t>(options.mailbox_capacity));
    Publish();
  }

  void Run();
  void HandleMail();
  void Publish();
  void Push(Message message);

  // Used by the engine thread alone while it runs.
  const std::unique_ptr<scheduler::Scheduler> scheduler;
  const std::unique_ptr<Executor> executor;
  OutputSink& sink;
  EngineLoop loop;
  std::vector<Message> messages;

  // Between the threads.
  base::Mailbox<Message> mailbox;
  std::atomic<bool> stop_requested = false;
  std::vector<std::atomic<std::uint64_t>> epochs;  // by tenant
  base::Counter num_accepted;
  base::Counter num_refused_late;  // came after the stop, finished by their submitters
  base::Mutex mutex;
  EngineStats published PAGODA_GUARDED_BY(mutex);

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
  for (std::uint32_t t = 0; t < epochs.size(); ++t) {
    epochs[t].store(scheduler->epoch(base::TenantId(t)), std::memory_order_release);
  }
  base::MutexLock lock(mutex);
  published = now;
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
  state_->num_refused_late.Add();
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

void Engine::FlushPrefixCache(std::optional<base::TenantId> only) {
  state_->Push({.kind = Message::Kind::kFlushPrefixCache, .tenant = only});
}

std::uint64_t Engine::epoch(base::TenantId tenant) const {
  return state_->epochs[tenant.value()].load(std::memory_order_acquire);
}

EngineStats Engine::stats() const {
  EngineStats stats;
  {
    base::MutexLock lock(state_->mutex);
    stats = state_->published;
  }
  // Read after the published ones, so that no request is finished before it was accepted.
  stats.num_finished += state_->num_refused_late.value();
  stats.num_accepted = state_->num_accepted.value();
  return stats;
}

}  // namespace pagoda::engine
