#pragma once

// Seeded faults of the scheduler: each is one switch in its code, taken when the process that runs
// says so, so that tests can be asked whether they would notice (tests/simulation/mutants.cc). Only
// test builds have them; elsewhere a switch is the constant false. One is active at most.
#ifdef PAGODA_TEST_CHECKS

#include <cstdint>

// clang-format off
#define PAGODA_MUTANTS(X) \
  X(kForgetsExcess, pool, "what others borrow does not count") \
  X(kIsolatedMayBorrow, pool, "an isolated tenant borrows") \
  X(kReserveIsOneMore, pool, "one block more than the share") \
  X(kRetiringNeverComes, pool, "growth does not wait for retiring blocks") \
  X(kNoWatermark, pool, "admissions leave nothing of common") \
  X(kWatermarkOfAnEmptyPool, pool, "an exact fit waits for a watermark") \
  X(kOverReserveCountsRetiring, pool, "E3 counts blocks that are on their way") \
  X(kOverReserveAtReserve, pool, "a tenant at its reserve loses requests") \
  X(kHandOutNamesNoJob, fence, "a hand-out is not named by its plan") \
  X(kGenerationStands, pool, "a hand-out keeps the generation") \
  X(kReleaseBeforeFence, fence, "a released block does not wait for its fence") \
  X(kReleaseForgetsJob, fence, "a release forgets the jobs that read") \
  X(kEvictsNewest, pool, "the most recently released goes first") \
  X(kEvictsFirstTenant, pool, "not the tenant furthest above its reserve") \
  X(kEvictsOwnFirst, pool, "a tenant evicts its own first") \
  X(kTieToTheHigher, pool, "a tie goes to the higher tenant") \
  X(kIsolatedTakesFree, pool, "an isolated tenant at R takes a free block") \
  X(kFreeKeepsEntry, index, "a freed block keeps its entry") \
  X(kNothingIsCached, pool, "what is released is not kept") \
  X(kHitStaysListed, pool, "a hit stays on the list of its tenant") \
  X(kHitStaysRetiring, fence, "a hit stays on the list of its fence") \
  X(kHolderNotCounted, pool, "a further holder is not counted") \
  X(kHolderNotNamed, counters, "the last holder is not known") \
  X(kSharedNotCounted, counters, "a block with two holders is not counted as shared") \
  X(kRecencyAtFence, pool, "recency is that of the fence") \
  X(kFenceSettlesOne, fence, "a fence settles one block") \
  X(kFenceIsAhead, fence, "a fence counts for the next job too") \
  X(kFlushKeepsRetiring, index, "a flushed retiring block becomes cached") \
  X(kFlushScrubsNothing, pool, "what is flushed is not zeroed") \
  X(kNewSharesUnasked, pool, "new shares do not wait for what is pinned") \
  X(kNewShareKeepsCache, pool, "a tenant that becomes isolated keeps its cache") \
  X(kEligibleBesideOthers, counters, "eligible means admissible beside all others") \
  X(kMatchPastAGap, index, "a match goes on past a block that is missing") \
  X(kIgnoresTokens, index, "a hit does not compare tokens") \
  X(kKeyChainKept, index, "a forgotten entry can be found by its key") \
  X(kParentChainKept, index, "a forgotten entry can be found by its parent") \
  X(kNamespaceFreedInUse, namespace, "a namespace is freed under a running request") \
  X(kEpochStands, namespace, "a flush keeps the epoch") \
  X(kEntryNotCounted, counters, "an entry is not counted") \
  X(kAnonymousPublishes, namespace, "a namespace of one request is published") \
  X(kOldEpochPublishes, namespace, "keys of an old epoch are published") \
  X(kSaltIgnored, namespace, "two salts make one namespace") \
  X(kTenantIgnored, namespace, "two tenants make one namespace") \
  X(kForkCopyUnnamed, fence, "a copy for a further choice names no block") \
  X(kPartialUncomputed, index, "a partial block is published with a token too many") \
  X(kFailurePublishes, index, "what a failed step left is published") \
  X(kVictimKeepsItem, pool, "a victim stays in the plan") \
  X(kForkCopyKept, fence, "the copy of a choice that ended is made") \
  X(kAdoptsBeyondShare, budget, "an adoption ignores the share") \
  X(kSealsATokenEarly, index, "a block is sealed before its last token") \
  X(kWaitsForNoKey, index, "equal prompts are computed twice") \
  X(kFailsForEver, budget, "a request whose step fails is tried for ever") \
  X(kCachedHitsAreFree, budget, "a cached hit is not counted as pinned") \
  X(kNoBarrierHolds, counters, "younger heads take the common blocks") \
  X(kNoReserveAfterPreemptions, budget, "a request preempted often comes back as any") \
  X(kCopiesATokenMore, index, "a copy takes a token that does not match") \
  X(kCopiesIntoItself, index, "a copy source is its own target") \
  X(kFullHitComputesNothing, index, "a full hit computes no token") \
  X(kSlotsBeyondFloor, budget, "a tenant takes a slot more than its floor") \
  X(kNoLimitOfRunning, budget, "max_running is ignored") \
  X(kOldestSlotVictim, budget, "the oldest request loses its slot") \
  X(kTakesFromOlder, budget, "growth preempts an older request") \
  X(kTakesWithinReserve, budget, "growth preempts inside a reserve") \
  X(kTakesATenantsOldest, budget, "growth preempts one that its tenant's reserve keeps") \
  X(kPausedIsSafe, budget, "a paused request is never a victim") \
  X(kMostWorkLost, budget, "the victim that loses most is taken") \
  X(kHandOutNotZeroed, pool, "a hand-out to a running request is not zeroed") \
  X(kRowsNotCounted, budget, "sampled rows cost nothing") \
  X(kTokensNotCounted, budget, "a prefill costs one token") \
  X(kDecodesUncharged, counters, "decoded tokens are not charged") \
  X(kWeightsIgnored, counters, "a charge ignores the weight") \
  X(kCreditIsBanked, counters, "an idle tenant keeps its credit") \
  X(kIsolatedGetsTheRest, budget, "an isolated tenant takes what is left") \
  X(kHighestCounterFirst, counters, "the highest counter goes first") \
  X(kPreemptedGoesLast, counters, "a preempted request queues as any") \
  X(kOvertakenForEver, counters, "a waiting request is overtaken for ever") \
  X(kNotFiniteIsSealed, index, "what a step without finite rows wrote is sealed") \
  X(kFailVoidsOne, fence, "a failure leaves later steps in force") \
  X(kFailForgetsHandOuts, fence, "a failure keeps blocks that were never zeroed") \
  X(kFailForgetsClosed, fence, "rows that a failed step closed stay open") \
  X(kForkCopiesShort, index, "a further choice misses the prompt's last token") \
  X(kFullHitIsWritten, index, "a full hit writes into a sealed block") \
  X(kReceiptForgetsRetiring, counters, "retiring blocks are on no receipt") \
  X(kReceiptCountsTwice, counters, "a receipt counts a block too many") \
  X(kLaneReadersIgnored, namespace, "a public prefix is read by whom it is not for") \
  X(kLaneGoesWithReader, pool, "a public block is freed by its last reader") \
  X(kFlushTakesLane, index, "a flush frees the public blocks that nobody holds") \
  X(kAgeForgetsFence, fence, "what ages does not wait for its fence") \
  X(kAgeNeverBegins, pool, "a hit does not begin the time of a block anew") \
  X(kSkipperReads, index, "a request that skips reading the cache reads all the same") \
  X(kSkipperAdopts, index, "a prompt to be computed whole adopts what is ahead of it")
// clang-format on

namespace pagoda::scheduler {

enum class Mutant : std::uint8_t {
  kNone,
#define PAGODA_DECLARE_MUTANT(name, group, what) name,
  PAGODA_MUTANTS(PAGODA_DECLARE_MUTANT)
#undef PAGODA_DECLARE_MUTANT
};

// Set once, before the first scheduler is made.
inline Mutant active_mutant = Mutant::kNone;

}  // namespace pagoda::scheduler

#define PAGODA_MUTANT(name) \
  (::pagoda::scheduler::active_mutant == ::pagoda::scheduler::Mutant::name)

#else
#define PAGODA_MUTANT(name) false
#endif
