#include "server/core/live_requests.h"

#include <gtest/gtest.h>

#include "tests/server/world.h"

namespace pagoda::server {
namespace {

class NoOwner final : public StreamOwner {
 public:
  void PostText(ResponseStreamRef) override {}
  void CancelInEngine(base::RequestId, scheduler::FinishReason) override {}
  void PauseInEngine(base::RequestId, bool) override {}
  void OnClosed(ResponseStream&) override {}
};

ResponseStreamRef StreamWith(std::uint64_t id, ReplyListener& reader, StreamOwner& owner) {
  ResponseStream::Identity identity;
  identity.id = base::RequestId{id};
  return std::make_shared<ResponseStream>(identity, StreamBounds{}, reader, owner);
}

TEST(LiveRequests, FindsWhatIsInsideAndForgetsWhatIsErased) {
  NoOwner owner;
  FakeReader reader;
  LiveRequests live(2);
  live.Insert(StreamWith(5, reader, owner));
  live.Insert(StreamWith(6, reader, owner));
  EXPECT_EQ(live.Find(base::RequestId{5})->identity().id.value(), 5u);
  EXPECT_EQ(live.Snapshot().size(), 2u);
  live.Erase(base::RequestId{5});
  live.Erase(base::RequestId{5});
  EXPECT_EQ(live.Find(base::RequestId{5}), nullptr);
  EXPECT_EQ(live.size(), 1u);
}

TEST(LiveRequestsDeathTest, MoreThanThePermitsIsOurBug) {
  NoOwner owner;
  FakeReader reader;
  LiveRequests live(1);
  live.Insert(StreamWith(1, reader, owner));
  EXPECT_DEATH(live.Insert(StreamWith(2, reader, owner)), "permits");
}

}  // namespace
}  // namespace pagoda::server
