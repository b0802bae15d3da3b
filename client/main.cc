#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "client/commands.h"

namespace {

// Ctrl-C arrives here and nowhere else: every thread blocks it, so that handling it may take locks.
// SIGUSR1 ends the thread.
void HandleSignals(const sigset_t& signals, pagoda::client::Interrupts& interrupts) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGINT) {
    if (!interrupts.Trigger()) _exit(128 + SIGINT);
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // errors come back as statuses
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals,
                  nullptr);  // before any thread is made, so that all inherit it

  pagoda::client::Interrupts interrupts;
  std::jthread signal_thread([&] { HandleSignals(signals, interrupts); });
  pagoda::client::Console console{
      .in = std::cin,
      .out = std::cout,
      .err = std::cerr,
      .interrupts = interrupts,
      .out_is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1,
      .err_is_terminal = isatty(STDERR_FILENO) == 1};
  const int code = pagoda::client::Run({argv + 1, argv + argc}, console);
  pthread_kill(signal_thread.native_handle(), SIGUSR1);
  return code;
}
