// A load against a server whose true answers are known, on a clock that moves only when told.
#include "client/load/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "client/load/load_report.h"
#include "tests/fakes/manual_clock.h"

namespace pagoda::client {
namespace {

constexpr std::int64_t kMilli = 1'000'000;

// Time jumps to whatever is waited for. One caller only.
class ManualPacer final : public LoadPacer {
 public:
  base::Instant Now() const override { return clock_.Now(); }
  void WaitUntil(base::Instant time) override {
    if (time > clock_.Now()) clock_.AdvanceNanos(time.NanosSince(clock_.Now()));
  }
  void Break() override {}
  void Advance(std::int64_t millis) { clock_.AdvanceMillis(millis); }

 private:
  fakes::ManualClock clock_;
};

// Each call takes the time that the test says and is kept.
class ManualTransport final : public LoadTransport {
 public:
  using Answer = std::function<void(std::int64_t index, CallOutcome& outcome)>;
  ManualTransport(ManualPacer& pacer, Answer answer) : pacer_(pacer), answer_(std::move(answer)) {}

  CallOutcome Call(std::int32_t, const PlannedRequest& request) override {
    CallOutcome outcome;
    outcome.sent = pacer_.Now();
    sent.push_back(outcome.sent);
    answer_(request.index, outcome);
    outcome.ended = pacer_.Now();
    return outcome;
  }
  void CancelAll() override { ++num_cancels; }

  std::vector<base::Instant> sent;
  int num_cancels = 0;

 private:
  ManualPacer& pacer_;
  const Answer answer_;
};

// The first token is no gap between tokens.
TEST(TokenTimes, K2_TheFirstTokenIsInNoGap) {
  TokenTimes times;
  const base::Instant start = base::Instant::FromNanos(0);
  times.Take(start.PlusMillis(400), 0);
  for (int i = 0; i <= 10; ++i) times.Take(start.PlusMillis(500 + 10 * i), 1);
  EXPECT_EQ(times.num_tokens(), 11);
  EXPECT_EQ(times.first().nanos(), 500 * kMilli);
  EXPECT_EQ(times.gaps_nanos(), std::vector<std::int64_t>(10, 10 * kMilli));
}

TEST(TokenTimes, AMessageOfSeveralTokensSharesItsGap) {
  TokenTimes times;
  const base::Instant start = base::Instant::FromNanos(0);
  times.Take(start, 3);
  times.Take(start.PlusMillis(40), 4);
  EXPECT_EQ(times.gaps_nanos(), std::vector<std::int64_t>(4, 10 * kMilli));
}

// 250 ms of service, 80 requests per second, one caller. The times begin when each request
// should have been sent, so they grow without end; those from the sending stay at 250 ms.
TEST(LoadRun, K1_ACallerThatFallsBehindCannotHideIt) {
  LoadOptions options;
  options.rate = 80.0;
  options.max_in_flight = 1;
  options.num_requests = 40;
  options.seed = 3;
  ManualPacer pacer;
  const base::Instant start = pacer.Now();
  ManualTransport transport(pacer, [&](std::int64_t, CallOutcome& outcome) {
    pacer.Advance(250);
    outcome.tokens.Take(pacer.Now(), 1);
  });
  const LoadPlan plan(options, 100);
  const LoadResult result = LoadRun(options, plan, transport, pacer).Run();

  // The same arrivals by hand: a request leaves at its time or when the caller is free.
  ArrivalTimes arrivals(80.0, 3);
  Samples expected(100), late(100);
  std::int64_t free_at = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t intended = arrivals.NextOffsetNanos();
    const std::int64_t sent = std::max(intended, free_at);
    EXPECT_EQ(transport.sent[static_cast<std::size_t>(i)].NanosSince(start), sent);
    free_at = sent + 250 * kMilli;
    expected.Add(free_at - intended);
    late.Add(sent - intended);
  }
  EXPECT_EQ(result.tally.num_finished, 40);
  const Summary first_token = result.tally.first_token.Summarize();
  EXPECT_DOUBLE_EQ(first_token.p50, expected.Summarize().p50);
  EXPECT_DOUBLE_EQ(first_token.p99, expected.Summarize().p99);
  EXPECT_DOUBLE_EQ(result.tally.first_token_from_send.Summarize().p99, 250.0);
  EXPECT_DOUBLE_EQ(result.tally.sent_late.Summarize().max, late.Summarize().max);
  EXPECT_GT(first_token.p50, 1000.0);
  EXPECT_NE(ReportAsText(options, result).find("sent late by"), std::string::npos);
}

// Failures are a population of their own.
TEST(LoadRun, K4_FailuresAreInNoTimeOfTheRepliesThatFinished) {
  LoadOptions options;
  options.num_requests = 100;
  ManualPacer pacer;
  ManualTransport transport(pacer, [&](std::int64_t index, CallOutcome& outcome) {
    const bool refused = index % 5 == 0;
    pacer.Advance(refused ? 1 : 100);
    if (refused) {
      outcome.failure = index % 2 == 0 ? "RESOURCE_EXHAUSTED" : "UNAVAILABLE";
      return;
    }
    outcome.tokens.Take(pacer.Now(), 2);
    outcome.receipt.set_prompt_tokens(10);
    outcome.receipt.set_cached_tokens(4);
    outcome.receipt.set_generated_tokens(2);
  });
  const LoadPlan plan(options, 100);
  const LoadResult result = LoadRun(options, plan, transport, pacer).Run();
  EXPECT_EQ(result.tally.num_finished, 80);
  EXPECT_EQ(result.tally.num_failed, 20);
  EXPECT_EQ(result.tally.failures.at("RESOURCE_EXHAUSTED"), 10);
  EXPECT_EQ(result.tally.failures.at("UNAVAILABLE"), 10);
  EXPECT_DOUBLE_EQ(result.tally.first_token.Summarize().p50, 100.0);
  EXPECT_EQ(result.tally.first_token.Summarize().count, 80);
  EXPECT_DOUBLE_EQ(result.tally.failed_after.Summarize().max, 1.0);
  EXPECT_EQ(result.tally.receipts.prompt_tokens, 800);
  EXPECT_EQ(result.tally.receipts.cached_tokens, 320);
  EXPECT_EQ(result.tally.output_tokens, 160);
  EXPECT_DOUBLE_EQ(result.seconds, 8.02);
  EXPECT_TRUE(HasFailed(options, result));
  options.allowed_failures_percent = 20;
  EXPECT_FALSE(HasFailed(options, result));
}

TEST(LoadRun, WhereNothingFinishedNoTimeIsShown) {
  LoadOptions options;
  options.num_requests = 3;
  options.allowed_failures_percent = 100;
  ManualPacer pacer;
  ManualTransport transport(
      pacer, [&](std::int64_t, CallOutcome& outcome) { outcome.failure = "UNAVAILABLE"; });
  const LoadPlan plan(options, 100);
  const LoadResult result = LoadRun(options, plan, transport, pacer).Run();
  EXPECT_TRUE(HasFailed(options, result));
  EXPECT_TRUE(ReportAsJson(options, result)["milliseconds"]["first_token"].is_null());
  EXPECT_NE(ReportAsText(options, result).find("none measured"), std::string::npos);
}

TEST(LoadRun, BeginsNothingAfterItsDuration) {
  LoadOptions options;
  options.duration_seconds = 1.0;
  ManualPacer pacer;
  ManualTransport transport(pacer, [&](std::int64_t, CallOutcome& outcome) {
    pacer.Advance(300);
    outcome.tokens.Take(pacer.Now(), 1);
  });
  const LoadPlan plan(options, 100);
  EXPECT_EQ(LoadRun(options, plan, transport, pacer).Run().tally.num_finished, 4);
  options.rate = 10.0;
  options.max_in_flight = 1;
  ArrivalTimes arrivals(10.0, 0);
  int wanted = 0;
  while (arrivals.NextOffsetNanos() < 1000 * kMilli) ++wanted;
  EXPECT_EQ(LoadRun(options, plan, transport, pacer).Run().tally.num_finished, wanted);
}

TEST(LoadRun, StoppingCancelsWhatRunsAndKeepsWhatHadFinished) {
  LoadOptions options;
  options.num_requests = 100;
  ManualPacer pacer;
  LoadRun* running = nullptr;
  ManualTransport transport(pacer, [&](std::int64_t index, CallOutcome& outcome) {
    if (index < 5) return outcome.tokens.Take(pacer.Now(), 1);
    running->Stop();
    outcome.failure = "CANCELLED";
  });
  const LoadPlan plan(options, 100);
  LoadRun run(options, plan, transport, pacer);
  running = &run;
  const LoadResult result = run.Run();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.tally.num_finished, 5);
  EXPECT_EQ(result.tally.num_failed, 0);
  EXPECT_EQ(transport.num_cancels, 1);
  EXPECT_EQ(run.num_sent(), 6);
}

}  // namespace
}  // namespace pagoda::client
