#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace pagoda::simulation {

// What simulations count: one that never preempts proves nothing about preemption.
enum class Seen : std::uint8_t {
  kRuns,
  kSteps,  // with a planned token
  kStepsOnSmallPools,
  kStepsOnLargePools,
  kEmptySteps,  // memory effects only: not counted as steps
  kAccepted,
  kFinished,
  kCancelled,
  kExpired,
  kCutSlow,
  kFailed,
  kNonFinite,
  kRefused,       // never fits, or is malformed
  kQueueRefused,  // its tenant's queue is full
  kPreemptions,
  kPausedVictims,
  kSlotVictims,
  kCrossTenantVictims,  // of a tenant that gained nothing by it
  kEvictionsByOthers,
  kEvictionsOfOwn,
  kAdoptions,
  kCopies,
  kForkCopies,
  kFullHits,
  kCachedTokens,
  kKeyWaits,
  kStalls,
  kReadmissions,
  kReservedReadmissions,  // after the third preemption
  kSubmitFailures,
  kAwaitFailures,
  kStepsLostBehind,  // voided by the failure of one before
  kTriedAlone,
  kSpoiledRows,
  kFlushes,
  kPauses,
  kReconfigurations,
  kRefusedReconfigurations,
  kGroups,  // requests with several choices
  kGroupPreemptions,
  kSharedRows,
  kChoicesEndedApart,
  kPromptScores,
  kStaleSamples,
  kCancelWaiting,
  kCancelPreempted,
  kCancelRunning,   // nothing of it in flight
  kCancelInFlight,  // a step in flight computes it
  kCancelLastToken,
  kCancelPaused,
  kCancelForking,  // choices wait for its prompt
  kCancelSuspect,  // to be tried alone
  kCancelEnded,
  kCancelUnknown,
  kAuditedEvictions,
  kIsolatedSteps,
  kPublicPrefixes,
  kLaneHits,    // blocks
  kLaneCopies,  // of the partial block after them
  kLaneMisses,  // admissions that a prefix would have served, had it been for their tenant
  kAgedBlocks,
  kCount,
};

struct Tally {
  std::array<std::int64_t, static_cast<std::size_t>(Seen::kCount)> counts{};

  std::int64_t& operator[](Seen what) { return counts[static_cast<std::size_t>(what)]; }
  std::int64_t operator[](Seen what) const { return counts[static_cast<std::size_t>(what)]; }
  void Add(const Tally& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
};

// The name of what is counted.
std::string_view NameOf(Seen what);
// One line per count.
std::string Describe(const Tally& tally);
// Fewer steps say nothing about what is rare.
inline constexpr std::int64_t kStepsForFloors = 1'000'000;
// What was met too seldom for the number of steps, a line each; empty when all floors hold.
std::string MissedFloors(const Tally& tally);

}  // namespace pagoda::simulation
