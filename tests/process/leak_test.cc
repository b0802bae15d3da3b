#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/tenant_calls.h"

// Row E9 at length: callers that go away, in every state of their requests, leave no block behind.
namespace pagoda::process {
namespace {

constexpr int kCallers = 8;
constexpr int kWays = 6;

// PAGODA_TEST_CANCELS asks for more of them than a test should take time for.
int NumCalls() {
  const char* const asked = std::getenv("PAGODA_TEST_CANCELS");
  return asked == nullptr ? 600 : std::atoi(asked);
}

// One call of one of the ways to go: at once, by a deadline that has passed, by one that passes on
// the way, after the first message, after three, and at the end.
void CallAndGo(v1::InferenceService::Stub& stub, int number) {
  const int way = number % kWays;
  const bool is_alpha = number / kWays % 2 == 0;
  v1::GenerateRequest request = RequestOf({.token = "",
                                           .prompt = 4 + number * 7 % 60,
                                           .max_tokens = way == 5 ? 3 : 120,
                                           .kind = static_cast<std::uint32_t>(number % 17)});
  if (number % 3 == 0) request.mutable_sampling()->set_n(2);
  ::grpc::ClientContext context;
  context.AddMetadata("authorization",
                      std::string("Bearer ") + (is_alpha ? kAlphaToken : kBetaToken));
  const auto now = std::chrono::system_clock::now();
  if (way == 1) context.set_deadline(now);
  if (way == 2) context.set_deadline(now + std::chrono::milliseconds(1 + number % 20));
  const auto reader = stub.Generate(&context, request);
  v1::GenerateResponse part;
  if (way == 3) reader->Read(&part);
  for (int i = 0; way == 4 && i < 3; ++i) reader->Read(&part);
  if (way == 5) {
    while (reader->Read(&part)) {
    }
  }
  context.TryCancel();
  ReadAll(*reader);
}

TEST(Leaks, CallersThatGoAwayInAnyStateLeaveNoBlockBehind) {
  // Few slots and a small pool, so that many of them wait, share blocks and are preempted.
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants("reserve-blocks = 20\n")),
                                        {"--max-num-seqs", "4"}));
  const v1::Stats at_start = server.Stats();
  const int num_calls = NumCalls();
  std::atomic<int> next = 0;
  std::vector<std::jthread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      const auto stub = v1::InferenceService::NewStub(server.NewChannel());
      for (int number = next++; number < num_calls; number = next++) CallAndGo(*stub, number);
    });
  }
  callers.clear();
  ASSERT_TRUE(server.AwaitStats([](const v1::Stats& stats) {
    const v1::RequestStats& requests = stats.requests();
    return requests.running() + requests.waiting() == 0 &&
           requests.completed() + requests.cancelled() + requests.failed() == requests.accepted() &&
           stats.blocks().retiring() == 0;
  }));
  const v1::Stats at_end = server.Stats();
  EXPECT_EQ(at_end.blocks().owned() + at_end.blocks().sealed(), 0);
  EXPECT_EQ(at_end.blocks().free() + at_end.blocks().cached(),
            at_start.blocks().free() + at_start.blocks().cached());
  for (const v1::TenantStats& tenant : at_end.tenants()) {
    EXPECT_EQ(tenant.blocks_pinned(), 0) << tenant.name();
    EXPECT_EQ(tenant.queued_tokens(), 0) << tenant.name();
  }
  const v1::RequestStats& requests = at_end.requests();
  EXPECT_EQ(requests.failed(), 0);
  // So that the count means something: some got through, more did not.
  EXPECT_GE(requests.completed(), num_calls / kWays / 2);
  EXPECT_GE(requests.cancelled(), num_calls / kWays);
  RecordProperty("accepted", std::to_string(requests.accepted()));
  RecordProperty("cancelled", std::to_string(requests.cancelled()));
  RecordProperty("completed", std::to_string(requests.completed()));
}

}  // namespace
}  // namespace pagoda::process
