// Threads of a slot: [slot * 1024, slot * 1024 + num_threads); a slot is a place for one resident
// CTA. A thread that must wait chooses the next one itself and switches straight to it: one switch
// per wait. When none can run, or at a fault, control goes back to the launcher's own stack, which
// leaves the fibers where they are: kernels hold nothing that would need cleaning up.

#include "kernels/emulation/emulator.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/emulation/fiber_switch.h"
#include "kernels/emulation/guarded_memory.h"
#include "kernels/emulation/race_watch.h"
#include "kernels/emulation/stack_sanitizer.h"

namespace pagoda::kernels::emulation {
namespace {

constexpr std::uint32_t kSlots = 2;
constexpr std::uint32_t kWarpsPerSlot = Emulator::kMaxThreads / 32;
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr std::size_t kMaxCopies = 128;  // of one thread, not waited for
constexpr std::size_t kCopyBytes = 16;
constexpr int kPoison = 0xff;  // a NaN in bf16 and in f32

enum class Waits : std::uint8_t { kNot, kForCta, kForWarp, kReturned };

struct PendingCopy {
  std::byte* target;
  const std::byte* source;
  std::uint32_t group;
};

struct Fiber {
  void* stack_top = nullptr;
  void* sanitizer_fiber = nullptr;
  ThreadPlace place;
  std::uint32_t slot = 0;
  Waits waits = Waits::kNot;
  CallSite site;
  // Copies not waited for, oldest first from `first_copy`, round and round.
  std::uint32_t first_copy = 0, num_copies = 0;
  std::uint32_t group = 0;        // of the copies to come
  std::uint32_t done_groups = 0;  // groups before it are complete
  std::array<PendingCopy, kMaxCopies> copies;
};

struct Warp {
  std::uint32_t arrived = 0, mask = 0;
  WarpOperation operation = WarpOperation::kSync;
  CallSite site;
  std::uint32_t meeting = 0;  // two sets of data: the slow may still read the last meeting's
  std::array<WarpData, 2> in, out;
  std::array<std::uint64_t, 2> order;  // of meetings that order memory, as the sanitizer knows it
};

struct Slot {
  bool busy = false;
  std::uint32_t alive = 0, at_barrier = 0;
  CallSite barrier_site;
};

// A copy may take place at any time between its start and its wait: it counts at both ends.
void NoteCopy(const PendingCopy& copy) {
  if (copy.source != nullptr) NoteRead(copy.source);
  NoteWrite(copy.target);
}

bool Same(CallSite a, CallSite b) { return a.line == b.line && std::strcmp(a.file, b.file) == 0; }

std::string Describe(CallSite site) {
  const std::string_view file(site.file);
  const std::size_t slash = file.rfind('/');
  return absl::StrCat(std::string(slash == file.npos ? file : file.substr(slash + 1)), ":",
                      site.line);
}

}  // namespace

struct Emulator::State {
  State()
      : stacks(kSlots * kMaxThreads, kStackBytes),
        shared(kSlots, kMaxSharedBytes),
        fibers(kSlots * kMaxThreads),
        warps(kSlots * kWarpsPerSlot) {}
  ~State() {
    for (const Fiber& fiber : fibers) EndFiber(fiber.sanitizer_fiber);
  }

  Fiber& current() { return fibers[running]; }
  std::uint32_t WarpOf(const Fiber& fiber) const {
    return fiber.slot * kWarpsPerSlot + fiber.place.thread / 32;
  }

  bool StartNextCta(std::uint32_t slot);
  void RunFibers();
  void Wait(Waits what, CallSite site);
  void LeaveToLauncher();
  void SwitchTo(void** saved, std::uint32_t next);
  void Returned();
  void ReleaseBarrier(std::uint32_t slot);
  void Execute(const PendingCopy& copy) const;
  void OrderAllBeforeLauncher();
  std::string WhoWaits() const;

  const GuardedMemory stacks, shared;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::array<Slot, kSlots> slots;
  ReadySet ready;
  Counters counters;
  BarrierOrders<kSlots> barrier_orders;

  // Of the launch under way.
  const EmulatedLaunch* launch = nullptr;
  Schedule schedule;
  std::optional<Picker> picker;
  std::uint64_t next_cta = 0, num_ctas = 0;
  std::uint32_t running = 0;
  void* launcher = nullptr;
  // Where a fiber that nobody comes back to is saved. Not on its stack: a sanitizer may already
  // have taken that apart.
  void* forgotten = nullptr;
  void* launcher_fiber = nullptr;
  StackRegion launcher_region;
  std::string fault;
};

namespace {

constinit thread_local Emulator::State* active = nullptr;

// Where a fresh fiber begins.
void FiberEntry() {
  Emulator::State& state = *active;
  const StackRegion from = FinishSwitch(nullptr);
  if (state.launcher_region.bottom == nullptr) state.launcher_region = from;
  state.launch->kernel(state.launch->arguments);
  active->Returned();
  PAGODA_CHECK_MSG(false, "a thread ran on after it had returned");
}

}  // namespace

// Gives the slot the next CTA of the grid: fresh fibers, NaNs in shared memory.
bool Emulator::State::StartNextCta(std::uint32_t slot) {
  if (next_cta == num_ctas) return false;
  const std::uint64_t index =
      schedule.order == Order::kReverse || schedule.order == Order::kGreedyReverse
          ? num_ctas - 1 - next_cta
          : next_cta;
  ++next_cta;
  ++counters.ctas;
  barrier_orders.Begin(slot);
  const Index3& grid = launch->grid;
  const std::size_t shared_bytes = launch->shared_bytes;
  // To the sanitizer it must not be the memory that the last CTA here used.
  if (kWatchesRaces) shared.Renew(slot);
  std::byte* const memory = shared.Piece(slot).data() + (kMaxSharedBytes - shared_bytes);
  std::memset(memory, kPoison, shared_bytes);
  const ThreadPlace place = {.thread = 0,
                             .num_threads = launch->num_threads,
                             .cta = {static_cast<std::uint32_t>(index % grid.x),
                                     static_cast<std::uint32_t>(index / grid.x % grid.y),
                                     static_cast<std::uint32_t>(index / grid.x / grid.y)},
                             .grid = grid,
                             .shared = memory,
                             .shared_bytes = shared_bytes};
  for (std::uint32_t t = 0; t < launch->num_threads; ++t) {
    const std::uint32_t at = slot * kMaxThreads + t;
    Fiber& fiber = fibers[at];
    fiber.place = place;
    fiber.place.thread = t;
    fiber.slot = slot;
    fiber.waits = Waits::kNot;
    fiber.first_copy = fiber.num_copies = fiber.group = fiber.done_groups = 0;
    const std::span<std::byte> stack = stacks.Piece(at);
    ForgetStack(stack);
    if (kWatchesRaces) stacks.Renew(at);
    fiber.stack_top = FreshStack(stack.data() + stack.size(), FiberEntry);
    fiber.sanitizer_fiber = RenewFiber(fiber.sanitizer_fiber);
    ready.Add(at);
  }
  for (std::uint32_t w = 0; w < kWarpsPerSlot; ++w) warps[slot * kWarpsPerSlot + w].arrived = 0;
  slots[slot] = {.busy = true, .alive = launch->num_threads, .at_barrier = 0, .barrier_site = {}};
  return true;
}

void Emulator::State::SwitchTo(void** saved, std::uint32_t next) {
  running = next;
  ++counters.switches;
  StackRegion old;
  const std::span<std::byte> stack = stacks.Piece(next);
  StartSwitch(saved == nullptr ? nullptr : &old, stack.data(), stack.size());
  EnterFiber(fibers[next].sanitizer_fiber);
  PagodaSwitchStack(saved == nullptr ? &forgotten : saved, fibers[next].stack_top);
  FinishSwitch(&old);
}

// Runs until no thread can.
void Emulator::State::RunFibers() {
  const std::optional<std::uint32_t> first = picker->First(ready);
  PAGODA_CHECK(first.has_value());
  running = *first;
  ++counters.switches;
  StackRegion own;
  const std::span<std::byte> stack = stacks.Piece(*first);
  StartSwitch(&own, stack.data(), stack.size());
  launcher_fiber = CurrentFiber();
  EnterFiber(fibers[*first].sanitizer_fiber);
  PagodaSwitchStack(&launcher, fibers[*first].stack_top);
  FinishSwitch(&own);
}

void Emulator::State::LeaveToLauncher() {
  StartSwitch(nullptr, launcher_region.bottom, launcher_region.bytes);
  EnterFiber(launcher_fiber);
  PagodaSwitchStack(&forgotten, launcher);
  PAGODA_CHECK_MSG(false, "the emulator came back to a thread that it had left");
}

void Emulator::State::Wait(Waits what, CallSite site) {
  Fiber& self = current();
  self.waits = what;
  self.site = site;
  const std::uint32_t at = running;
  ready.Remove(at);
  const std::optional<std::uint32_t> next = picker->Next(ready, at);
  if (!next.has_value()) LeaveToLauncher();
  SwitchTo(&self.stack_top, *next);
}

void Emulator::State::ReleaseBarrier(std::uint32_t slot) {
  ++counters.barriers;
  barrier_orders.Next(slot);
  slots[slot].at_barrier = 0;
  for (std::uint32_t t = 0; t < launch->num_threads; ++t) {
    Fiber& fiber = fibers[slot * kMaxThreads + t];
    if (fiber.waits != Waits::kForCta) continue;
    fiber.waits = Waits::kNot;
    ready.Add(slot * kMaxThreads + t);
  }
}

// The kernel has returned in the running thread. As on hardware, those that wait for the CTA no
// longer wait for this one.
void Emulator::State::Returned() {
  Fiber& self = current();
  if (self.num_copies > 0) Fault("a thread returned with asynchronous copies under way", self.site);
  TellOrder(&num_ctas);
  self.waits = Waits::kReturned;
  ready.Remove(running);
  Slot& slot = slots[self.slot];
  --slot.alive;
  if (slot.alive > 0 && slot.at_barrier == slot.alive) ReleaseBarrier(self.slot);
  if (slot.alive == 0) {
    slot.busy = false;
    // The new CTA's fibers take this stack over: the launcher lays them out, not we.
    LeaveToLauncher();
  }
  const std::optional<std::uint32_t> next = picker->Next(ready, running);
  if (!next.has_value()) LeaveToLauncher();
  SwitchTo(nullptr, *next);
}

void Emulator::State::Execute(const PendingCopy& copy) const {
  if (copy.source == nullptr) {
    std::memset(copy.target, 0, kCopyBytes);
  } else {
    std::memcpy(copy.target, copy.source, kCopyBytes);
  }
}

// A fault leaves threads where they are; what they did is done all the same.
void Emulator::State::OrderAllBeforeLauncher() {
  if (!kWatchesRaces) return;
  void* const own = CurrentFiber();
  for (const Fiber& fiber : fibers) {
    if (fiber.sanitizer_fiber == nullptr) continue;
    EnterFiber(fiber.sanitizer_fiber);
    TellOrder(&num_ctas);
    EnterFiber(own);
  }
}

// Places where threads wait, each once, with how many.
std::string Emulator::State::WhoWaits() const {
  std::string text;
  std::vector<std::pair<std::string, int>> places;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    if (!slots[slot].busy) continue;
    for (std::uint32_t t = 0; t < launch->num_threads; ++t) {
      const Fiber& fiber = fibers[slot * kMaxThreads + t];
      if (fiber.waits == Waits::kReturned) continue;
      const char* const what = fiber.waits == Waits::kForCta ? "for their CTA" : "for their warp";
      const std::string place = absl::StrCat(what, " at ", Describe(fiber.site));
      const auto same = std::find_if(places.begin(), places.end(),
                                     [&place](const auto& entry) { return entry.first == place; });
      if (same == places.end()) {
        places.emplace_back(place, 1);
      } else {
        ++same->second;
      }
    }
  }
  for (const auto& [place, count] : places) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", count, " threads wait ", place);
  }
  return text;
}

Emulator::Emulator() : state_(std::make_unique<State>()) {}
Emulator::~Emulator() = default;

const Counters& Emulator::counters() const { return state_->counters; }
void Emulator::ResetCounters() { state_->counters = {}; }

absl::Status Emulator::Run(const EmulatedLaunch& launch, const Schedule& schedule) {
  State& state = *state_;
  PAGODA_CHECK(active == nullptr);
  PAGODA_CHECK(launch.num_threads >= 1 && launch.num_threads <= kMaxThreads);
  PAGODA_CHECK(launch.shared_bytes <= kMaxSharedBytes && launch.shared_bytes % 16 == 0);
  PAGODA_CHECK(schedule.resident_ctas >= 1 && schedule.resident_ctas <= int{kSlots});
  state.launch = &launch;
  state.schedule = schedule;
  state.picker.emplace(schedule);
  state.next_cta = 0;
  state.num_ctas = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  state.ready.Clear();
  state.slots = {};
  state.fault.clear();
  state.launcher_region = {};
  active = &state;
  for (;;) {
    bool busy = false;
    for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(schedule.resident_ctas);
         ++slot) {
      busy = state.slots[slot].busy || state.StartNextCta(slot) || busy;
    }
    if (!busy) break;
    if (!state.picker->Next(state.ready, 0).has_value()) {
      state.fault = absl::StrCat("no thread can run: ", state.WhoWaits());
    } else {
      state.RunFibers();
    }
    if (!state.fault.empty()) break;
  }
  active = nullptr;
  if (!state.fault.empty()) state.OrderAllBeforeLauncher();
  TakeOrder(&state.num_ctas);
  if (state.fault.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("kernel ", launch.name, ": ", state.fault));
}

const ThreadPlace& Self() { return active->current().place; }

void MeetCta(CallSite site) {
  Emulator::State& state = *active;
  const std::uint32_t at = state.current().slot;
  Slot& slot = state.slots[at];
  if (slot.at_barrier == 0) {
    slot.barrier_site = site;
  } else if (!Same(slot.barrier_site, site)) {
    Fault("threads of one CTA wait for each other at different places", site);
  }
  const void* const order = state.barrier_orders.Current(at);
  TellOrder(order);
  if (++slot.at_barrier == slot.alive) {
    state.ReleaseBarrier(at);
  } else {
    state.Wait(Waits::kForCta, site);
  }
  TakeOrder(order);
}

const LaneData& MeetWarp(WarpOperation operation, std::uint32_t mask, CallSite site,
                         const LaneData& brought, Combine combine) {
  Emulator::State& state = *active;
  const std::uint32_t at = state.running;
  Warp& warp = state.warps[state.WarpOf(state.current())];
  const std::uint32_t lane = at % 32;
  if ((mask >> lane & 1u) == 0) Fault("a lane is not in the mask that it names", site);
  if (warp.arrived == 0) {
    warp.mask = mask;
    warp.operation = operation;
    warp.site = site;
  } else if (warp.mask != mask || warp.operation != operation || !Same(warp.site, site)) {
    Fault("lanes of one warp meet with different operations, masks or places", site);
  }
  const std::uint32_t set = warp.meeting % 2;
  warp.in[set].lanes[lane] = brought;
  warp.arrived |= 1u << lane;
  // Other meetings exchange what they exchange, and order no memory.
  const bool orders = operation == WarpOperation::kSync;
  if (orders) TellOrder(&warp.order[set]);
  if (warp.arrived != mask) {
    state.Wait(Waits::kForWarp, site);
    if (orders) TakeOrder(&warp.order[set]);
    return warp.out[set].lanes[lane];
  }
  if (orders) TakeOrder(&warp.order[set]);
  {
    const Unwatched unwatched;
    combine(warp.in[set], warp.out[set]);
  }
  ++state.counters.warp_meetings;
  ++warp.meeting;
  warp.arrived = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    if ((mask >> i & 1u) != 0) state.fibers[at - lane + i].waits = Waits::kNot;
  }
  state.ready.AddWarp(at / 32, mask);
  return warp.out[set].lanes[lane];
}

void CopyLater(std::byte* target, const std::byte* source, CallSite site) {
  Emulator::State& state = *active;
  Fiber& self = state.current();
  self.site = site;
  CheckShared(target, kCopyBytes, kCopyBytes, site);
  if (reinterpret_cast<std::uintptr_t>(source) % kCopyBytes != 0) {
    Fault("an asynchronous copy reads from an address that is not a multiple of 16", site);
  }
  if (self.num_copies == kMaxCopies) Fault("too many asynchronous copies under way", site);
  if (source != nullptr) state.counters.async_bytes += kCopyBytes;
  const PendingCopy copy = {target, source, self.group};
  NoteCopy(copy);
  if (state.schedule.copies == CopyTime::kEarly) {
    state.Execute(copy);
  } else {
    std::memset(target, kPoison, kCopyBytes);
  }
  self.copies[(self.first_copy + self.num_copies++) % kMaxCopies] = copy;
}

void CommitCopies() { ++active->current().group; }

void WaitForCopies(std::uint32_t groups) {
  Emulator::State& state = *active;
  Fiber& self = state.current();
  while (self.num_copies > 0) {
    const PendingCopy& copy = self.copies[self.first_copy];
    // Copies of the group not yet committed are not waited for.
    if (copy.group + groups >= self.group) break;
    if (state.schedule.copies == CopyTime::kLate) state.Execute(copy);
    NoteCopy(copy);
    self.first_copy = (self.first_copy + 1) % kMaxCopies;
    --self.num_copies;
  }
}

void Fault(const char* what, CallSite site) {
  Emulator::State& state = *active;
  const ThreadPlace& place = state.current().place;
  state.fault = absl::StrCat(what, ", at ", Describe(site), ", thread ", place.thread, " of CTA ",
                             place.cta.x, ", ", place.cta.y, ", ", place.cta.z);
  state.LeaveToLauncher();
  std::abort();
}

void CheckShared(const void* address, std::size_t count, std::size_t alignment, CallSite site) {
  const ThreadPlace& place = Self();
  const auto* const at = static_cast<const std::byte*>(address);
  if (reinterpret_cast<std::uintptr_t>(at) % alignment != 0) {
    Fault("a shared address is not aligned", site);
  }
  if (at < place.shared || at + count > place.shared + place.shared_bytes) {
    Fault("a shared address lies outside the CTA's shared memory", site);
  }
}

void CheckSharedRead16(const void* address, CallSite site) {
  CheckShared(address, 16, 16, site);
  NoteRead(address);
}

std::uint8_t PlantedFault() { return active->schedule.planted_fault; }

void CountMatrixLoad(std::uint32_t bank_conflicts) {
  ++active->counters.matrix_loads;
  active->counters.bank_conflicts += bank_conflicts;
}

void CountMatrixMultiply() { ++active->counters.matrix_multiplies; }

}  // namespace pagoda::kernels::emulation
