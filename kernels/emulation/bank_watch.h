#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/emulation/thread.h"

namespace pagoda::kernels::emulation {

// While it lives, what the kernels that run on this thread ask of shared memory by NoteShared is
// kept, and told as accesses of warps: the lanes of a warp that come to one place for the same time
// are one access. Words of 4 bytes lie in 32 banks; a bank gives one word a pass, to any number of
// lanes; a warp's accesses of 8 and 16 bytes are two and four in turn. Meant for lanes that go
// through a place equally often, and for short runs: every access of every lane is kept. One at a
// time. Owner: a test.
class BankWatch {
 public:
  struct Access {
    CallSite site;
    std::uint64_t cta;
    std::uint32_t thread;
    std::uint32_t offset;  // in shared memory
    std::uint32_t bytes;
  };
  // Of a place in a kernel's source: accesses of warps, and the further passes that they needed.
  struct Place {
    std::string file;  // without its folder
    int line = 0;
    std::uint64_t accesses = 0, conflicts = 0;
  };

  BankWatch();
  BankWatch(const BankWatch&) = delete;
  ~BankWatch();

  // In the order of files and lines.
  std::vector<Place> Places() const;

  void Note(const Access& access) { accesses_.push_back(access); }

 private:
  std::vector<Access> accesses_;
};

}  // namespace pagoda::kernels::emulation
