#include "tests/simulation/tally.h"

#include <string>

namespace pagoda::simulation {
namespace {

struct Row {
  Seen what;
  std::string_view name;
  std::int64_t least_per_million;  // steps
};

// Floors are about a third of what was seen first, so that a generator that loses a kind of case is
// noticed and chance is not.
constexpr Row kRows[] = {
    {Seen::kRuns, "runs", 0},
    {Seen::kSteps, "steps with a planned token", 0},
    {Seen::kStepsOnSmallPools, "  on pools of at most 64 blocks", 800'000},
    {Seen::kStepsOnLargePools, "  on pools of 1,024 blocks", 10'000},
    {Seen::kEmptySteps, "steps of memory effects only", 0},
    {Seen::kAccepted, "requests accepted", 38'500},
    {Seen::kFinished, "  finished by themselves", 32'500},
    {Seen::kCancelled, "  cancelled", 3'100},
    {Seen::kExpired, "  past their deadline", 1'300},
    {Seen::kCutSlow, "  cut as slow readers", 600},
    {Seen::kFailed, "  failed twice", 100},
    {Seen::kNonFinite, "  not finite", 800},
    {Seen::kRefused, "requests refused: never fit", 11'900},
    {Seen::kQueueRefused, "requests refused: queue full", 1'600},
    {Seen::kPreemptions, "preemptions", 3'200},
    {Seen::kPausedVictims, "  of paused requests", 200},
    {Seen::kSlotVictims, "  for a slot", 27},
    {Seen::kCrossTenantVictims, "  for another tenant", 700},
    {Seen::kEvictionsByOthers, "evictions by other tenants", 11'600},
    {Seen::kEvictionsOfOwn, "evictions of own blocks", 82'700},
    {Seen::kAdoptions, "adoptions", 2'500},
    {Seen::kCopies, "partial blocks copied", 9'500},
    {Seen::kForkCopies, "  for further choices", 4'000},
    {Seen::kFullHits, "full hits", 2'100},
    {Seen::kCachedTokens, "cached tokens", 87'500},
    {Seen::kKeyWaits, "waits for a key", 1'300},
    {Seen::kStalls, "stalls for blocks", 6'400},
    {Seen::kReadmissions, "readmissions", 3'200},
    {Seen::kReservedReadmissions, "  with a reserve", 65},
    {Seen::kSubmitFailures, "failed submissions", 2'100},
    {Seen::kAwaitFailures, "failed steps", 3'600},
    {Seen::kStepsLostBehind, "  steps voided behind them", 1'500},
    {Seen::kTriedAlone, "steps tried alone", 1'100},
    {Seen::kSpoiledRows, "rows not finite", 800},
    {Seen::kFlushes, "flushes", 1'800},
    {Seen::kPauses, "pauses", 4'100},
    {Seen::kReconfigurations, "reconfigurations", 1'100},
    {Seen::kRefusedReconfigurations, "  refused", 90},
    {Seen::kGroups, "requests with several choices", 4'200},
    {Seen::kGroupPreemptions, "  preempted", 200},
    {Seen::kSharedRows, "  rows shared", 6'800},
    {Seen::kChoicesEndedApart, "  choices that ended apart", 1'100},
    {Seen::kPromptScores, "prompt tokens scored", 9'300},
    {Seen::kStaleSamples, "stale samples", 5'900},
    {Seen::kCancelWaiting, "cancels of waiting requests", 2'400},
    {Seen::kCancelPreempted, "cancels of preempted requests", 100},
    {Seen::kCancelRunning, "cancels of running requests, nothing in flight", 600},
    {Seen::kCancelInFlight, "cancels with a step in flight", 500},
    {Seen::kCancelLastToken, "cancels with the last token in flight", 66},
    {Seen::kCancelPaused, "cancels of paused requests", 700},
    {Seen::kCancelForking, "cancels while choices wait for the prompt", 21},
    {Seen::kCancelSuspect, "cancels of requests to be tried alone", 5},
    {Seen::kCancelEnded, "cancels of ended requests", 3'600},
    {Seen::kCancelUnknown, "cancels of unknown requests", 2'300},
    {Seen::kAuditedEvictions, "evictions looked at by the auditor", 94'300},
    {Seen::kIsolatedSteps, "steps with an isolated tenant's work", 25'600},
    {Seen::kPublicPrefixes, "public prefixes", 900},
    {Seen::kLaneHits, "  hits on their blocks", 2'700},
    {Seen::kLaneCopies, "  copies of a part of a block", 1'900},
    {Seen::kLaneMisses, "  misses by tenants that they are not for", 320},
    {Seen::kAgedBlocks, "cached blocks that aged away", 7'000},
};
static_assert(std::size(kRows) == static_cast<std::size_t>(Seen::kCount));

const Row& RowOf(Seen what) { return kRows[static_cast<std::size_t>(what)]; }

}  // namespace

std::string_view NameOf(Seen what) { return RowOf(what).name; }

std::string Describe(const Tally& tally) {
  std::string text;
  for (const Row& row : kRows) {
    char line[96];
    std::snprintf(line, sizeof(line), "%14lld  %s\n", static_cast<long long>(tally[row.what]),
                  std::string(row.name).c_str());
    text += line;
  }
  return text;
}

std::string MissedFloors(const Tally& tally) {
  std::string missed;
  for (const Row& row : kRows) {
    const std::int64_t least = row.least_per_million * tally[Seen::kSteps] / 1'000'000;
    if (tally[row.what] >= least) continue;
    missed += std::string(row.name) + ": " + std::to_string(tally[row.what]) + ", at least " +
              std::to_string(least) + " are wanted\n";
  }
  return missed;
}

}  // namespace pagoda::simulation
