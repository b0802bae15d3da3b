#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>

namespace pagoda::simulation {

// How a piece of work ended that had a process of its own: a violated invariant aborts, so whoever
// wants to live on runs it in a child.
enum class ChildEnd : std::uint8_t {
  kPassed,   // the work came to its end
  kAborted,  // by a check or a signal
  kHung,     // it was stopped after its seconds
};

struct ChildOptions {
  int seconds = 600;      // of wall clock
  bool is_quiet = false;  // what it prints is not shown, but kept
};

class ChildProcess {
 public:
  // Runs work() in a forked copy of this process. Requires: this process has one thread.
  static ChildProcess Start(const std::function<void()>& work, const ChildOptions& options);
  ChildEnd Wait();
  // What a quiet child has printed. Requires: Wait has returned.
  std::string said() const;

 private:
  ChildProcess(int pid, int output) : pid_(pid), output_(output) {}
  int pid_;
  int output_;  // a file without a name; -1: what it prints is shown
};

struct ChildReport {
  ChildEnd end = ChildEnd::kPassed;
  std::string said;  // of a quiet one
};
// Start and Wait.
ChildReport RunInChild(const std::function<void()>& work, const ChildOptions& options);

// Memory that children of this process write and it reads: plain data only.
void* MapShared(std::size_t size);
template <typename T>
T& MakeShared() {
  return *::new (MapShared(sizeof(T))) T();
}

}  // namespace pagoda::simulation
