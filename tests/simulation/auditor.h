#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/scheduler_state.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/tally.h"

namespace pagoda::simulation {

// Watches a scheduler from outside and holds every plan against the rules, by books of its own: it
// trusts block tables, block states and the plan's lists, and no count, list or decision function.
// The books are kept per block from what plans say: who was handed it, which job wrote or named it
// last, when it was let go. Rules that the tokens cannot show are checked here:
//   no block is handed out before the fence of a job that named it, or twice in a plan
//   nothing but an Owned block with one holder is written; nothing unfinished is read by others
//   a table names blocks of its request's namespace and epoch only; so does a copy
//   evictions: a free block first; from the tenant furthest above its reserve; E1, E2; least
//   recently released first, leaves before what they stand on
//   shares: pinned beyond reserves fits in common; an isolated tenant stays within its reserve and
//   its floors
//   a prompt that is to be computed whole: whatever comes into its table in place of a block stands
//   where its own jobs had written all of it; nothing is copied into it but its own
//   victims: E3, E4; one preempted often comes back with room to go on
//   order: nobody new is admitted before one of its tenant's that ran before
//   public lane: read by those whom a prefix is for, where their tokens are its own, never written
//   again and never let go
//   age: a cached block goes when its time is over, not before, and is zeroed
//   progress: the oldest that can run is never left without a token while nothing is awaited
class Auditor {
 public:
  Auditor(const scheduler::SchedulerState& state, const Scenario& scenario, Tally& tally);

  void BeforePlan(base::Instant now);
  void AfterPlan(const scheduler::StepPlan* plan);
  // Any other call may have let blocks go.
  void Observe();
  void JobEnded(base::JobId job) { ended_ = std::max(ended_, job); }
  void Fenced(base::JobId job) { fenced_ = std::max(fenced_, job); }
  void Flushed(std::optional<base::TenantId> tenant);

 private:
  static constexpr std::uint32_t kNobody = 0xffffffffu;
  // Of a request that shares with nobody: this and its place.
  static constexpr std::uint64_t kOneRequestNamespaces = 1'000'000;

  // What is known of one block.
  struct Book {
    std::uint32_t tenant = kNobody;  // it was handed to
    std::uint64_t name_space = 0;    // of its content; 0: nobody's
    std::uint64_t epoch = 0;         // of its content
    std::uint64_t incarnation = 0;   // of the request that it was handed to
    bool computes_all = false;       // that one
    std::int32_t table_index = 0;
    std::array<base::JobId, kMaxBlockSize> written_by;  // by token slot; the newest
    base::JobId named_by;                               // the newest
    // Observations: let go at the first of them, or unseen at a later one. Equal: in one call.
    std::uint64_t released_at = 0, released_last = 0;
    // The pool's time then: between these.
    base::Instant released_after, released_before;
    std::uint32_t released_from = kNobody;  // the slot, if one alone held it
    std::int32_t released_index = 0;        // in its table
    std::uint32_t holder = kNobody;         // the slot, if one alone holds it
    std::int32_t num_holders = 0;
    std::uint32_t prefix = kNobody;  // of the public lane: the request that brought it
    std::int32_t prefix_index = 0;   // its place in that one
    scheduler::BlockState state = scheduler::BlockState::kFree;  // at the last observation
  };
  struct TenantBook {
    std::int32_t used = 0, pinned = 0, retiring = 0, running_slots = 0, handed_out = 0;
    std::int32_t reserve = 0;
    bool isolated = false;
    std::int64_t slot_victims = 0;
  };
  // A request that ran before the plan.
  struct Runner {
    scheduler::RequestIndex place;
    base::RequestId id;
    std::uint32_t tenant = 0;
    bool paused = false;
    bool is_plannable = false;
  };
  // A request that ran before, and waits again.
  struct Returner {
    scheduler::RequestIndex place;
    base::RequestId id;
    std::uint32_t tenant = 0;
  };
  // A block that the plan hands out, and two of them that may have been taken the other way round.
  struct Taking {
    std::uint32_t block = 0, taker = 0, slot = 0;
  };
  using Exchange = std::pair<std::ptrdiff_t, std::ptrdiff_t>;
  // What a table held at the last observation.
  struct SeenTable {
    std::uint64_t incarnation = 0;
    std::size_t script = 0;  // of its request
    bool computes_all = false;
    std::vector<std::uint32_t> blocks;
  };
  // What a request that computes all has computed.
  struct OwnWork {
    std::uint64_t first_incarnation = 0;
    std::uint64_t incarnation = 0;       // the newest
    std::vector<bool> has_whole_blocks;  // by place in the table; one of its choices had it
  };

  // Whether the jobs that wrote the first slots have ended.
  bool IsWritten(const Book& book, std::uint32_t num_slots) const;
  std::uint64_t NamespaceOf(const scheduler::LiveRequest& live) const;
  bool ComputesAll(const scheduler::LiveRequest& live) const;
  bool MustCompute(const scheduler::LiveRequest& live, std::int32_t table_index) const;
  bool HasComputed(std::size_t script, std::uint64_t incarnation, std::int32_t table_index) const;
  void NoteOwnWork();
  void ReadShares();
  void NoteHolders();
  void CheckNewEntry(base::SlotId slot, std::int32_t index);
  void EnterLane(Book& book) const;
  void CheckLaneEntry(base::SlotId slot, std::int32_t index);
  void CheckLaneCopy(const scheduler::BlockCopy& copy) const;
  bool BeginsLike(base::SlotId slot, std::uint32_t prefix, std::int32_t num_tokens) const;
  void CountLaneMisses(const scheduler::LiveRequest& live);
  bool OnlyAgeDrops() const;
  void CheckAges(const scheduler::StepPlan* plan);
  void NoteRunners();
  void NoteWaiting();
  void CheckAdmissions();
  void CheckRoom(base::SlotId slot) const;
  bool IsClean() const;
  bool WasAdmittedInVain() const;
  void TakeEffects(const scheduler::StepPlan& plan);
  void TakeHandOut(std::uint32_t block, const scheduler::StepPlan& plan);
  std::uint32_t TenantWithMore() const;
  void NoteTakings(const scheduler::StepPlan& plan);
  std::vector<Exchange> PossibleExchanges(const scheduler::StepPlan& plan) const;
  void CheckEvictions(const scheduler::StepPlan& plan);
  const char* FaultOfTakings();
  const char* FaultOfEviction(const Taking& taking) const;
  const char* FaultOfRecency(std::uint32_t evicted) const;
  bool Survives(std::uint32_t block) const;
  void CheckCopy(const scheduler::BlockCopy& copy, const scheduler::StepPlan& plan);
  void CheckItem(const scheduler::StepPlan& plan, const scheduler::WorkItem& item);
  void NoteTakers();
  void CheckVictims();
  bool IsKept(const Runner& runner) const;
  void CheckVictim(const Runner& victim);
  void CheckShares() const;
  void CheckBounds(const scheduler::StepPlan& plan);
  void CheckTenants(const std::vector<std::int32_t>& tokens_of);
  std::int32_t FloorOf(std::uint32_t tenant, std::int32_t whole) const;
  void CheckProgress(const scheduler::StepPlan* plan);
  const Runner* OldestPlannable(std::uint32_t tenant) const;
  bool MayStandStill(const Runner& runner) const;
  void CountWaits(const scheduler::StepPlan& plan);

  const scheduler::SchedulerState& state_;
  const Scenario& scenario_;
  Tally& tally_;
  std::vector<Book> books_;  // by block
  std::vector<TenantBook> tenants_;
  std::vector<std::uint64_t> epochs_;  // by tenant
  std::vector<SeenTable> tables_;      // by slot
  std::vector<OwnWork> own_work_;      // by script
  base::JobId ended_, fenced_;
  std::uint64_t observations_ = 0;
  std::int64_t num_adoptions_ = 0;
  base::Instant now_;    // of the newest plan that was asked for
  base::Instant begun_;  // of the newest that was made
  // Of the plan in the making.
  std::vector<Runner> runners_;
  std::vector<Returner> returners_;
  std::vector<bool> was_new_;             // by place
  std::vector<Taking> takings_;           // in order
  std::vector<TenantBook> trial_;         // the tenants after them
  std::vector<bool> was_zeroed_;          // by block
  std::vector<bool> has_item_;            // by slot
  std::vector<std::uint32_t> takers_;     // slots that take blocks
  std::vector<std::uint32_t> unclaimed_;  // blocks whose takers are gone
  std::int64_t num_preemptions_ = 0;      // before it
  bool shares_changed_ = false, was_suspect_ = false, was_busy_ = false;
  bool was_admitted_in_vain_ = false;  // and gave way before it could be seen
};

}  // namespace pagoda::simulation
