#include "server/core/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/field_error.h"
#include "server/core/refusal.h"
#include "server/core/text_calls.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

using absl::StatusCode;
using scheduler::FinishReason;
using testing::HasSubstr;
using Taken = ResponseStream::Taken;

absl::Status EndOf(ResponseStream& stream) {
  JoinedReply joined;
  PAGODA_CHECK(joined.TakeAll(stream));
  return joined.joined().end->status;
}

TEST(Pipeline, ARequestReachesTheEngineWholeAndItsReplyTheDoor) {
  World world;
  FakeReader reader;
  CallInput input = World::Text("abcd", 5);
  input.fields.seed = 99;
  input.stops = {"gh"};
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  const scheduler::NewRequest& request = world.engine.request(id);
  EXPECT_EQ(request.tokens(), (std::vector<base::TokenId>{0, 1, 2, 3}));
  EXPECT_EQ(request.keys().size(), 1u);
  EXPECT_EQ(request.epoch(), 7u);
  EXPECT_NE(request.stop_condition, nullptr);
  EXPECT_EQ(request.sampling().seed, 99u);
  world.engine.Deliver(id, {4, 5});
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  JoinedReply joined;
  ASSERT_TRUE(joined.TakeAll(*stream));
  EXPECT_EQ(joined.joined().choices[0].text, "ef");
  EXPECT_EQ(joined.joined().end->seed, 99u);
  EXPECT_EQ(joined.joined().end->max_tokens, 5);
  EXPECT_EQ(joined.joined().end->receipt.prompt_tokens, 4);
  EXPECT_EQ(world.pipeline.num_live(), 0);
  EXPECT_EQ(world.pipeline.metrics().requests_completed.value(), 1);
}

TEST(Pipeline, AnEchoIsThePromptAsTheModelSawIt) {
  World::Options options;
  options.pieces = {"a", "b", "<s>", "c"};
  options.control = {2};
  options.chat = true;
  const auto echo_of = [&options](PromptInput prompt) {
    World world(options);
    FakeReader reader;
    CallInput input = World::Ids({0});
    input.prompt = std::move(prompt);
    input.output.echo = true;
    const auto stream = world.MustStart(std::move(input), reader);
    ReplyPart part;
    EXPECT_EQ(stream->Take(part), ResponseStream::Taken::kPart);
    EXPECT_EQ(part.prompt.tokens, world.engine.request(stream->identity().id).choice(0).tokens);
    stream->Cancel();
    world.engine.ReadMail();
    world.RunText();
    return part.prompt.text;
  };
  EXPECT_EQ(echo_of(TextPrompt{"ab", false, std::nullopt}), "ab");
  EXPECT_EQ(echo_of(TextPrompt{"a<s>b", true, std::nullopt}), "a<s>b");
  EXPECT_EQ(echo_of(TokenPrompt{2, 3, 0}), "<s>ca");
  EXPECT_EQ(echo_of(ChatPrompt{{{"user", "ac"}, {"user", "b"}}, true}), "acb");
}

TEST(Pipeline, BadWordsReachTheEngineAsTokens) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.bad_words = {"ab", "c"};
  const auto stream = world.MustStart(std::move(input), reader);
  const auto words = world.engine.request(stream->identity().id).bad_words();
  EXPECT_EQ(std::vector<base::TokenId>(words.begin(), words.end()),
            (std::vector<base::TokenId>{2, 0, 1, 1, 2}));
  stream->Cancel();
  world.engine.ReadMail();
  world.RunText();
}

TEST(Pipeline, AnEmptyBadWordEndsTheRequestByItsField) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.bad_words = {" "};
  const auto stream = world.pipeline.Start(world.caller, std::move(input), reader);
  ASSERT_TRUE(stream.ok());
  world.RunText();
  EXPECT_EQ(base::FieldOf(EndOf(**stream)), "bad_words");
}

TEST(Pipeline, ControlTokensAreShownWhenTheyAreNotSkipped) {
  World::Options options;
  options.pieces = {"a", "<s>", "</s>", "d"};
  options.control = {1, 2};
  for (const bool skip : {true, false}) {
    World world(options);
    FakeReader reader;
    CallInput input = World::Ids({0});
    input.output.skip_special_tokens = skip;
    input.fields.stop_token_ids = {2};
    const auto stream = world.MustStart(std::move(input), reader);
    const base::RequestId id = stream->identity().id;
    world.engine.Deliver(id, {0, 1, 3, 2});
    world.engine.Finish(id, {.reason = FinishReason::kStop, .matched_stop_token = 2});
    world.RunText();
    JoinedReply joined;
    ASSERT_TRUE(joined.TakeAll(*stream));
    // A token that ends the reply adds no text either way.
    EXPECT_EQ(joined.joined().choices[0].text, skip ? "ad" : "a<s>d");
    EXPECT_EQ(joined.joined().choices[0].tokens.size(), 4u);
  }
}

TEST(Pipeline, StopStringsSeeTheControlTokensThatTheTextShows) {
  World::Options options;
  options.pieces = {"a", "<s>", "b"};
  options.control = {1};
  for (const bool skip : {true, false}) {
    World world(options);
    FakeReader reader;
    CallInput input = World::Ids({0});
    input.output.skip_special_tokens = skip;
    input.fields.include_stop_string = true;
    input.stops = {"a<s>"};
    const auto stream = world.MustStart(std::move(input), reader);
    const scheduler::NewRequest& request = world.engine.request(stream->identity().id);
    EXPECT_TRUE(request.include_stop_string());
    const auto first = request.stop_condition->Advance(base::StopCondition::kStartState, 0);
    EXPECT_EQ(request.stop_condition->Advance(first.next_state, 1).matched_stop, skip ? -1 : 0);
    stream->Cancel();
    world.engine.ReadMail();
    world.RunText();
  }
}

TEST(Pipeline, AnAbsentSeedIsDrawnAndDiffersFromRequestToRequest) {
  World world;
  FakeReader first_reader, second_reader;
  const auto first = world.MustStart(World::Ids({0}), first_reader);
  const auto second = world.MustStart(World::Ids({0}), second_reader);
  EXPECT_NE(world.engine.request(first->identity().id).sampling().seed,
            world.engine.request(second->identity().id).sampling().seed);
  first->Cancel();
  second->Cancel();
  world.engine.ReadMail();
  world.RunText();
}

TEST(Pipeline, WhatDoesNotFitTheGateIsRefusedAtOnceWithAHintAndTheRestGoesOn) {
  World::Options options;
  options.max_requests = 2;
  World world(options);
  FakeReader reader;
  const auto first = world.MustStart(World::Ids({0}), reader);
  const auto second = world.MustStart(World::Ids({0}), reader);
  const auto third = world.pipeline.Start(world.caller, World::Ids({0}), reader);
  EXPECT_EQ(third.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(base::ReasonOf(third.status()), reason::kQueueFull);
  EXPECT_TRUE(RetryAfterMsOf(third.status()).has_value());
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("2 of 2"));
  world.engine.Finish(first->identity().id, FinishReason::kStop);
  world.RunText();
  EXPECT_TRUE(EndOf(*first).ok());
  const auto fourth = world.MustStart(World::Ids({0}), reader);
  for (const auto& stream : {second, fourth}) {
    world.engine.Finish(stream->identity().id, FinishReason::kStop);
    world.RunText();
    EXPECT_TRUE(EndOf(*stream).ok());
  }
}

TEST(Pipeline, QueuedPromptTokensAreBoundedAndFreedByTheFirstToken) {
  World::Options options;
  options.max_queued_tokens = 10;
  World world(options);
  FakeReader reader;
  const auto first = world.MustStart(World::Ids({0, 1, 2, 3, 4, 5}), reader);
  EXPECT_EQ(world.pipeline.Start(world.caller, World::Ids({0, 1, 2, 3, 4}), reader).status().code(),
            StatusCode::kResourceExhausted);
  world.engine.Deliver(first->identity().id, {1});
  const auto second = world.MustStart(World::Ids({0, 1, 2, 3, 4}), reader);
  for (const auto& stream : {first, second}) {
    world.engine.Finish(stream->identity().id, FinishReason::kStop);
    world.RunText();
    EXPECT_TRUE(EndOf(*stream).ok());
  }
}

TEST(Pipeline, RefusesBadRequestsByFieldBeforeTheyCostAnything) {
  World world;
  FakeReader reader;
  const auto refused = [&](CallInput input) {
    return world.pipeline.Start(world.caller, std::move(input), reader).status();
  };
  CallInput input = World::Ids({0});
  input.fields.temperature = -1.0f;
  EXPECT_EQ(base::FieldOf(refused(std::move(input))), "temperature");
  input = World::Ids({0});
  input.cache_salt = std::string(257, 's');
  EXPECT_EQ(base::FieldOf(refused(std::move(input))), "cache_salt");
  input = World::Ids({0});
  input.client_request_id = std::string(129, 'x');
  EXPECT_EQ(base::FieldOf(refused(std::move(input))), "client_request_id");
  input = World::Text(std::string(65, 'a'));
  EXPECT_EQ(base::FieldOf(refused(std::move(input))), "text");
  input = World::Ids({0});
  input.model = "other";
  EXPECT_EQ(refused(std::move(input)).code(), StatusCode::kNotFound);
  input = World::Ids({0});
  input.model = "alias";
  const auto taken = world.MustStart(std::move(input), reader);
  taken->Cancel();
  world.engine.ReadMail();
  world.RunText();
  EXPECT_EQ(world.pipeline.metrics().requests_refused.value(), 5);
}

// Row E7: edge lengths.
TEST(Pipeline, EdgeLengthsOfPromptsEndWithTheirOwnStatusAndDisturbNobody) {
  World world;
  FakeReader neighbour_reader;
  const auto neighbour = world.MustStart(World::Ids({0}), neighbour_reader);
  const auto end_for = [&](std::size_t prompt, std::optional<std::int32_t> max_tokens) {
    CallInput input = World::Ids(std::vector<base::TokenId>(prompt, 1));
    input.fields.max_tokens = max_tokens;
    FakeReader reader;
    auto stream = world.pipeline.Start(world.caller, std::move(input), reader);
    if (!stream.ok()) return stream.status();
    world.RunText();
    world.engine.ReadMail();
    if (world.engine.num_live() == 2) {
      world.engine.Finish((*stream)->identity().id, FinishReason::kLength);
      world.RunText();
    }
    return EndOf(**stream);
  };
  EXPECT_EQ(end_for(0, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(end_for(1, 63).ok());
  EXPECT_TRUE(end_for(63, 1).ok());
  EXPECT_TRUE(end_for(63, std::nullopt).ok());
  EXPECT_EQ(end_for(63, 2).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(end_for(64, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(end_for(65, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(end_for(1, 0).code(), StatusCode::kInvalidArgument);
  world.engine.Finish(neighbour->identity().id, FinishReason::kStop);
  world.RunText();
  EXPECT_TRUE(EndOf(*neighbour).ok());
}

TEST(Pipeline, FaultsFoundWhilePreparingEndTheRequestWithTheField) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0, 999});
  auto stream = world.pipeline.Start(world.caller, std::move(input), reader);
  ASSERT_TRUE(stream.ok());
  world.RunText();
  EXPECT_EQ(EndOf(**stream).code(), StatusCode::kInvalidArgument);
  input = World::Ids({0});
  input.stops = {""};
  stream = world.pipeline.Start(world.caller, std::move(input), reader);
  ASSERT_TRUE(stream.ok());
  world.RunText();
  EXPECT_EQ(base::FieldOf(EndOf(**stream)), "stop");
  input = World::Ids({0});
  input.prompt = ChatPrompt{{{"user", "hi"}}, true};
  stream = world.pipeline.Start(world.caller, std::move(input), reader);
  ASSERT_TRUE(stream.ok());
  world.RunText();
  EXPECT_EQ(base::ReasonOf(EndOf(**stream)), reason::kNoChatTemplate);
}

TEST(Pipeline, ADeadlineThatPassedBeforePreparationEndsTheRequestThere) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.fields.deadline = world.clock.Now().PlusMillis(5);
  auto stream = world.pipeline.Start(world.caller, std::move(input), reader);
  ASSERT_TRUE(stream.ok());
  world.clock.AdvanceMillis(5);
  world.RunText();
  EXPECT_TRUE(world.engine.submitted().empty());
  const absl::Status status = EndOf(**stream);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(base::ReasonOf(status), reason::kDeadlineWhileQueued);
}

// Ten tokens of the tenant wait, twelve with this request's own: three steps of four.
TEST(Pipeline, ADeadlineThatTheTenantsOwnQueueCannotMeetIsRefusedBeforeTheEngine) {
  World::Options options;
  options.step_millis = 7;
  World world(options);
  FakeReader first_reader;
  const auto first = world.MustStart(World::Ids(std::vector<base::TokenId>(10, 1)), first_reader);
  for (const auto& [millis, fits] : {std::pair(20, false), std::pair(21, true)}) {
    FakeReader reader;
    CallInput input = World::Ids({0, 1});
    input.fields.deadline = world.clock.Now().PlusMillis(millis);
    auto stream = world.pipeline.Start(world.caller, std::move(input), reader);
    ASSERT_TRUE(stream.ok());
    world.RunText();
    world.engine.ReadMail();
    EXPECT_EQ(world.engine.num_live(), fits ? 2u : 1u);
    if (fits) {
      world.engine.Finish((*stream)->identity().id, scheduler::FinishReason::kStop);
      world.RunText();
      EXPECT_TRUE(EndOf(**stream).ok());
      continue;
    }
    const absl::Status status = EndOf(**stream);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(base::ReasonOf(status), reason::kDeadlineTooSoon);
    EXPECT_THAT(
        std::string(status.message()),
        testing::AllOf(testing::HasSubstr("12 prompt tokens"),
                       testing::HasSubstr("3 steps of 7 ms"), testing::HasSubstr("leaves 20 ms")));
  }
  first->Cancel();
  world.engine.ReadMail();
  world.RunText();
}

TEST(Pipeline, AnonymousRequestsHaveNamespacesOfTheirOwnAndNoKeys) {
  World::Options options;
  options.mode = Authenticator::Mode::kAnonymous;
  World world(options);
  FakeReader reader;
  const auto first = world.MustStart(World::Ids({0, 1, 2, 3}), reader);
  const auto second = world.MustStart(World::Ids({0, 1, 2, 3}), reader);
  const auto& a = world.engine.request(first->identity().id);
  const auto& b = world.engine.request(second->identity().id);
  EXPECT_TRUE(a.one_request_namespace);
  EXPECT_NE(*a.cache_namespace, *b.cache_namespace);
  EXPECT_FALSE(a.has_keys());
  first->Cancel();
  second->Cancel();
  world.engine.ReadMail();
  world.RunText();
}

TEST(Pipeline, NothingIsTakenWhileLoadingOrDraining) {
  World::Options options;
  options.serving = false;
  World world(options);
  FakeReader reader;
  EXPECT_EQ(base::ReasonOf(world.pipeline.Start(world.caller, World::Ids({0}), reader).status()),
            reason::kLoading);
  world.lifecycle.MoveTo(ServerState::kServing);
  const auto running = world.MustStart(World::Ids({0}), reader);
  world.lifecycle.MoveTo(ServerState::kDraining);
  world.pipeline.CloseGate();
  const absl::Status refused = world.pipeline.Start(world.caller, World::Ids({0}), reader).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_EQ(base::ReasonOf(refused), reason::kDraining);
  EXPECT_FALSE(world.pipeline.WaitUntilEmpty(base::Instant::FromNanos(0)));
  world.engine.Finish(running->identity().id, FinishReason::kStop);
  world.RunText();
  EXPECT_TRUE(EndOf(*running).ok());
  EXPECT_TRUE(world.pipeline.WaitUntilEmpty(base::Instant::FromNanos(0)));
}

TEST(Pipeline, WhatIsStillBeingPreparedWhenSubmissionsCloseEndsWithShutdown) {
  World world;
  FakeReader reader;
  auto stream = world.pipeline.Start(world.caller, World::Ids({0}), reader);
  ASSERT_TRUE(stream.ok());
  world.pipeline.CloseSubmissions();
  world.RunText();
  EXPECT_TRUE(world.engine.submitted().empty());
  EXPECT_EQ(base::ReasonOf(EndOf(**stream)), reason::kShutdown);
}

// Row F9, second half: a dead engine.
TEST(Pipeline, AFailedEngineEndsEveryRequestTakesHealthDownAndRefusesNewOnes) {
  World world;
  FakeReader reader;
  const auto running = world.MustStart(World::Ids({0}), reader);
  auto queued = world.pipeline.Start(world.caller, World::Ids({0}), reader);
  ASSERT_TRUE(queued.ok());
  EXPECT_TRUE(world.lifecycle.healthy());
  world.engine.FailForGood(absl::InternalError("device lost"));
  EXPECT_FALSE(world.lifecycle.healthy());
  world.RunText();
  for (const ResponseStreamRef& stream : {running, *queued}) {
    const absl::Status status = EndOf(*stream);
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_EQ(base::ReasonOf(status), reason::kEngineFailed);
  }
  EXPECT_EQ(base::ReasonOf(world.pipeline.Start(world.caller, World::Ids({0}), reader).status()),
            reason::kEngineFailed);
}

TEST(Pipeline, TextCallsRunOnTextWorkersWithinTheirBound) {
  World world;
  std::string text;
  const auto call = [&] {
    return MakeDetokenizeCall({0, 1}, true, world.pipeline.model(),
                              [&](absl::StatusOr<std::string> got) { text += *got; });
  };
  EXPECT_TRUE(world.pipeline.PostTextCall(world.caller, call()).ok());
  EXPECT_TRUE(world.pipeline.PostTextCall(world.caller, call()).ok());
  EXPECT_EQ(base::ReasonOf(world.pipeline.PostTextCall(world.caller, call())), reason::kQueueFull);
  EXPECT_EQ(text, "");
  world.RunText();
  EXPECT_EQ(text, "abab");
  EXPECT_TRUE(world.pipeline.PostTextCall(world.caller, call()).ok());
  world.RunText();
}

}  // namespace
}  // namespace pagoda::server
