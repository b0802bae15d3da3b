// Every order of a few moves on a world so small that requests must fight for blocks: what random
// tests find rarely, this meets for certain.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/scheduler/world.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr int kNumMoves = 9;

// A move that makes no sense now (nothing in flight to complete) is left out, so different lists
// may tell the same story.
class Story {
 public:
  // With choices, the second and the third request ask for two.
  explicit Story(bool with_choices = false)
      : world_(MakeConfig()),
        second_(with_choices ? "add b prompt=3 max=2 n=2\n" : "add b prompt=4 max=3\n"),
        third_(with_choices ? "add c prompt=2 from=9 max=3 n=2\n"
                            : "add c prompt=2 from=9 max=6\n") {}

  static SchedulerConfig MakeConfig() {
    SchedulerConfig config = SmallConfig(5, 2, 2);
    config.max_in_flight = 2;
    return config;
  }

  void Move(int move) {
    switch (move) {
      case 0:
        return AddOnce("a", "add a prompt=3 max=4\n");
      case 1:
        return AddOnce("b", second_);
      case 2:
        return AddOnce("c", third_);
      case 3:
        return Step();
      case 4:
        return Done();
      case 5:
        return Fail();
      case 6:
        return Cancel("a");
      case 7:
        return Cancel("b");
      default:
        return Pause();
    }
  }

  void Finish() {
    while (in_flight_ > 0) Done();
    if (paused_) world_.Run("resume a\n");
    world_.Run("run\n");
    PAGODA_CHECK(world_.scheduler().idle());
    const SchedulerStats stats = world_.scheduler().stats();
    PAGODA_CHECK(stats.blocks_free + stats.blocks_cached == 4);
  }

 private:
  void AddOnce(const std::string& name, const char* line) {
    if (std::ranges::find(added_, name) != added_.end()) return;
    added_.push_back(name);
    world_.Run(line);
  }
  bool WasAdded(const std::string& name) const {
    return std::ranges::find(added_, name) != added_.end();
  }
  void Step() {
    const int before = world_.num_steps();
    if (in_flight_ < 2) world_.Run("step\n");
    in_flight_ += world_.num_steps() - before;
  }
  void Done() {
    if (in_flight_ == 0) return;
    world_.Run("done\n");
    --in_flight_;
  }
  void Fail() {
    if (in_flight_ != 1) return;
    world_.Run("fail\n");
    --in_flight_;
  }
  void Cancel(const std::string& name) {
    if (WasAdded(name)) world_.Run("cancel " + name + "\n");
  }
  void Pause() {
    if (!WasAdded("a")) return;
    world_.Run(paused_ ? "resume a\n" : "pause a\n");
    paused_ = !paused_;
  }

  World world_;
  const char* const second_;
  const char* const third_;
  std::vector<std::string> added_;
  int in_flight_ = 0;
  bool paused_ = false;
};

// Calls for each list of `length` moves.
template <typename Tell>
void TellAll(int length, Tell tell) {
  int num_stories = 1;
  for (int i = 0; i < length; ++i) num_stories *= kNumMoves;
  std::vector<int> moves(static_cast<std::size_t>(length));
  for (int code = 0; code < num_stories; ++code) {
    int rest = code;
    for (int& move : moves) {
      move = rest % kNumMoves;
      rest /= kNumMoves;
    }
    tell(moves);
  }
}

TEST(SmallWorld, EveryOrderOfFourMovesOfRequestsWithTwoChoicesEndsWithTheRightAnswers) {
  TellAll(4, [](const std::vector<int>& moves) {
    for (const std::vector<int>& opening : {std::vector<int>{1, 3}, std::vector<int>{0, 1, 3}}) {
      Story story(/*with_choices=*/true);
      for (const int move : opening) story.Move(move);
      for (const int move : moves) story.Move(move);
      story.Finish();
    }
  });
}

TEST(SmallWorld, EveryOrderOfFiveMovesAfterTheAddsEndsWithTheRightAnswersAndNoBlockLost) {
  TellAll(5, [](const std::vector<int>& moves) {
    Story story;
    for (const int move : {0, 1, 3}) story.Move(move);
    for (const int move : moves) story.Move(move);
    story.Finish();
  });
}

}  // namespace
}  // namespace pagoda::scheduler::testing
