#include "server/shutdown_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>

namespace pagoda::server {
namespace {

constexpr int kExitCodeOfSecondSignal = 130;
constexpr int kStopListening = SIGUSR1;

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, kStopListening);
  return signals;
}

}  // namespace

ShutdownSignals::ShutdownSignals() {
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  listener_ = std::jthread([this] { Listen(); });
}

ShutdownSignals::~ShutdownSignals() { pthread_kill(listener_.native_handle(), kStopListening); }

void ShutdownSignals::Listen() {
  const sigset_t signals = HandledSignals();
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == kStopListening) return;
    {
      base::MutexLock lock(mutex_);
      if (signal == SIGHUP) {
        reload_asked_ = true;
      } else {
        if (signalled_) _exit(kExitCodeOfSecondSignal);
        signalled_ = true;
        asked_ = true;
      }
    }
    arrived_.NotifyAll();
  }
}

bool ShutdownSignals::asked() const {
  base::MutexLock lock(mutex_);
  return asked_;
}

void ShutdownSignals::Ask() {
  {
    base::MutexLock lock(mutex_);
    asked_ = true;
  }
  arrived_.NotifyAll();
}

ShutdownSignals::Event ShutdownSignals::Wait() {
  base::MutexLock lock(mutex_);
  while (!asked_ && !reload_asked_) arrived_.Wait(mutex_);
  if (asked_) return Event::kDrain;
  reload_asked_ = false;
  return Event::kReload;
}

}  // namespace pagoda::server
