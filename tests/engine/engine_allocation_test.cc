#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "engine/journal.h"
#include "tests/engine/engine_world.h"
#include "tests/fakes/scripted_executor.h"

// Every allocation of this binary is counted while counting is on.
namespace {
std::int64_t num_allocations = 0;
bool counting = false;
}  // namespace

void* operator new(std::size_t size) {
  if (counting) ++num_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pagoda::engine {
namespace {

// Keeps finished requests in room that was reserved before.
class KeepingSink final : public OutputSink {
 public:
  explicit KeepingSink(std::size_t capacity) { ended_.reserve(capacity); }
  void OnTokens(const TokenDelivery& delivery) override { num_tokens_ += delivery.tokens.size(); }
  void OnPromptScores(const PromptScoreDelivery& delivery) override {
    num_scores_ += delivery.scores.size();
  }
  void OnFinished(scheduler::FinishEvent event) override { ended_.push_back(std::move(event)); }
  void OnEngineFailed(const absl::Status&) override {}

  std::size_t num_tokens() const { return num_tokens_; }
  std::size_t num_finished() const { return ended_.size(); }

 private:
  std::vector<scheduler::FinishEvent> ended_;
  std::size_t num_tokens_ = 0;
  std::size_t num_scores_ = 0;
};

// Also while what it does is recorded, and while a segment is opened.
class Allocations : public testing::TestWithParam<std::size_t> {};

TEST_P(Allocations, AnEngineThatHasStartedAllocatesNothing) {
  const WorldConfig config{.pool_blocks = 40};
  Journal journal(GetParam());
  const auto scheduler = MakeScheduler(config);
  fakes::ScriptedExecutor executor(config.max_num_seqs);
  KeepingSink sink(64);
  const fakes::ManualClock clock;
  EngineLoop loop({.mailbox_capacity = kMailboxCapacity,
                   .eos_tokens = {kEos},
                   .journal = GetParam() > 0 ? &journal : nullptr},
                  *scheduler, executor, sink, clock);
  std::vector<Message> messages;
  for (const Ask& ask : MakeAsks(40, 11)) {
    messages.push_back({.kind = Message::Kind::kSubmit, .request = MakeRequest(ask, config)});
  }
  std::vector<std::uint8_t> room(1'000'000);
  counting = true;
  for (Message& message : messages) loop.Handle(std::move(message));
  loop.Handle({.kind = Message::Kind::kCancel, .id = base::RequestId(39)});
  for (int i = 0; i < 10; ++i) loop.RunTurn();
  const std::size_t snapshot_bytes = scheduler->Snapshot(room);
  while (loop.RunTurn() == EngineLoop::Turn::kWorked) {
  }
  counting = false;
  EXPECT_GT(snapshot_bytes, 10'000u);
  EXPECT_EQ(sink.num_finished(), 40u);
  EXPECT_GT(sink.num_tokens(), 100u);
  EXPECT_EQ(num_allocations, 0);
  const Journal::Pin pin(journal);
  EXPECT_EQ(pin.segments().size(), GetParam() > 0 ? 1u : 0u);
}
INSTANTIATE_TEST_SUITE_P(WithAndWithoutAJournal, Allocations,
                         testing::Values(std::size_t{0}, std::size_t{3 * 1'000'000}));

}  // namespace
}  // namespace pagoda::engine
