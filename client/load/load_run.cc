#include "client/load/load_run.h"

#include <thread>
#include <vector>

#include "base/check.h"

namespace pagoda::client {
namespace {

constexpr double kNanosPerSecond = 1e9;

}  // namespace

LoadRun::LoadRun(const LoadOptions& options, const LoadPlan& plan, LoadTransport& transport,
                 LoadPacer& pacer)
    : options_(options), plan_(plan), transport_(transport), pacer_(pacer) {
  PAGODA_CHECK(options_.num_callers() >= 1);
  PAGODA_CHECK(options_.num_requests.has_value() || options_.duration_seconds.has_value());
  if (options_.rate.has_value()) arrivals_.emplace(*options_.rate, options_.seed);
}

LoadResult LoadRun::Run() {
  const auto num_callers = static_cast<std::size_t>(options_.num_callers());
  std::vector<LoadTally> tallies(num_callers, LoadTally(kMaxStoredSamples / num_callers));
  start_ = pacer_.Now();
  {
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < num_callers; ++i) {
      callers.emplace_back([this, i, &tallies] { Work(static_cast<std::int32_t>(i), tallies[i]); });
    }
  }
  LoadResult result{
      .tally = LoadTally(0),
      .seconds = static_cast<double>(pacer_.Now().NanosSince(start_)) / kNanosPerSecond,
      .stopped = stopped()};
  for (const LoadTally& tally : tallies) result.tally.Merge(tally);
  return result;
}

void LoadRun::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
  }
  pacer_.Break();
  transport_.CancelAll();
}

bool LoadRun::stopped() {
  base::MutexLock lock(mutex_);
  return stopped_;
}

std::optional<LoadRun::Turn> LoadRun::NextTurn() {
  base::Instant begins = pacer_.Now();
  base::MutexLock lock(mutex_);
  if (stopped_ || next_index_ == options_.num_requests) return std::nullopt;
  Turn turn;
  if (arrivals_.has_value()) {
    begins = start_.PlusNanos(arrivals_->NextOffsetNanos());
    turn.intended = begins;
  }
  const auto offset = static_cast<double>(begins.NanosSince(start_));
  if (options_.duration_seconds.has_value() &&
      offset >= *options_.duration_seconds * kNanosPerSecond) {
    return std::nullopt;
  }
  turn.index = next_index_++;
  return turn;
}

void LoadRun::Work(std::int32_t caller, LoadTally& tally) {
  while (const std::optional<Turn> turn = NextTurn()) {
    // Made before it is due, so that the making delays nothing.
    const PlannedRequest request = plan_.Request(turn->index);
    if (turn->intended.has_value()) pacer_.WaitUntil(*turn->intended);
    if (stopped()) return;
    const base::Instant intended = turn->intended.value_or(pacer_.Now());
    ++num_sent_;
    const CallOutcome outcome = transport_.Call(caller, request);
    // What Ctrl-C cut off says nothing about the server.
    if (!outcome.failure.empty() && stopped()) return;
    tally.Take(intended, outcome);
    ++(outcome.failure.empty() ? num_finished_ : num_failed_);
    output_tokens_ += outcome.tokens.num_tokens();
  }
}

}  // namespace pagoda::client
