#include "server/core/response_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/field_error.h"
#include "server/core/refusal.h"
#include "tests/server/world.h"

namespace pagoda::server {
namespace {

using scheduler::FinishReason;
using testing::ElementsAre;
using Taken = ResponseStream::Taken;
using Tokens = std::vector<base::TokenId>;

World::Options SmallStreams() {
  World::Options options;
  options.stream = {.ring_tokens = 16, .pause_at = 4, .resume_at = 1};
  options.max_model_len = 1000;
  return options;
}

TEST(ResponseStream, EverythingReadyBecomesOnePart) {
  World world;
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  world.engine.Deliver(stream->identity().id, {1});
  world.RunText();
  world.engine.Deliver(stream->identity().id, {2, 3});
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.choices[0].text, "bcd");
  EXPECT_EQ(part.choices[0].tokens, (Tokens{1, 2, 3}));
  EXPECT_EQ(stream->Take(part), Taken::kNothing);
  world.engine.Finish(stream->identity().id, FinishReason::kLength);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_TRUE(part.end->status.ok());
}

TEST(ResponseStream, ScoresComeWithTheirTokens) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.fields.logprobs = 2;
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  ReplyPart part;
  world.engine.DeliverScored(id, {1}, 2);
  world.RunText();
  world.engine.DeliverScored(id, {2, 3}, 2);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  ASSERT_EQ(part.choices[0].scores.size(), part.choices[0].tokens.size());
  for (std::size_t i = 0; i < part.choices[0].tokens.size(); ++i) {
    EXPECT_EQ(part.choices[0].scores.scores[i].of.token, part.choices[0].tokens[i]);
    EXPECT_EQ(part.choices[0].scores.AlternativesOf(part.choices[0].scores.scores[i]).back().token,
              1u);
  }
  world.engine.DeliverScored(id, {4}, 2);
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  ASSERT_EQ(part.choices[0].scores.size(), 1u);
  EXPECT_EQ(part.choices[0].scores.scores[0].of.token, 4u);
}

TEST(ResponseStream, ThePromptsEchoAndScoresComeBeforeTheReply) {
  World world;
  FakeReader reader;
  CallInput input = World::Text("abc");
  input.fields.prompt_logprobs = 1;
  input.output.echo = true;
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.prompt.text, "abc");
  EXPECT_EQ(part.prompt.tokens, (Tokens{0, 1, 2}));
  EXPECT_FALSE(part.choices[0].has_content());
  world.engine.DeliverPromptScores(id, {1}, 1);
  world.engine.DeliverPromptScores(id, {2}, 1);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.prompt.scores.size(), 2u);
  EXPECT_TRUE(part.prompt.text.empty());
  world.engine.Deliver(id, {4});
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[0].text, "e");
  EXPECT_TRUE(part.prompt.empty());
}

TEST(ResponseStream, ScoresOfAPromptThatNobodyReadsPauseTheRequest) {
  World world(SmallStreams());
  FakeReader reader;
  CallInput input = World::Ids(Tokens(20, 0));
  input.fields.prompt_logprobs = 0;
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  world.engine.DeliverPromptScores(id, {1, 2, 3}, 0);
  EXPECT_TRUE(world.engine.pauses().empty());
  world.engine.DeliverPromptScores(id, {4}, 0);
  EXPECT_EQ(world.engine.pauses(), (std::vector<bool>{true}));
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(stream->num_unread_tokens(), 0u);
  EXPECT_EQ(world.engine.pauses(), (std::vector<bool>{true, false}));
  world.engine.DeliverPromptScores(id, {5, 6}, 0);
  stream->Cancel();
  world.engine.ReadMail();
  world.RunText();
  EXPECT_EQ(stream->num_unread_tokens(), 0u);
}

TEST(ResponseStream, AListenerIsToldOnceAndOnlyAfterATakeThatGaveNothing) {
  World world;
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  const base::RequestId id = stream->identity().id;
  ReplyPart part;
  world.engine.Deliver(id, {1});
  world.RunText();
  EXPECT_EQ(reader.num_notices, 0);
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(stream->Take(part), Taken::kNothing);
  world.engine.Deliver(id, {2});
  world.engine.Deliver(id, {3});
  world.RunText();
  world.engine.Finish(id, FinishReason::kStop);
  world.RunText();
  EXPECT_EQ(reader.num_notices, 1);
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[0].tokens, (Tokens{2, 3}));
}

TEST(ResponseStream, TokensAreShownAtOnceAndTextOnlyAsFarAsItMayBe) {
  World world;
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  const base::RequestId id = stream->identity().id;
  ReplyPart part;
  world.engine.Deliver(id, {1, 2}, /*showable=*/1);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.choices[0].text, "b");
  EXPECT_EQ(part.choices[0].tokens, (Tokens{1, 2}));
  world.engine.Deliver(id, {3}, /*showable=*/3);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.choices[0].text, "cd");
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  stream->Take(part);
}

TEST(ResponseStream, AMatchedStopStringIsCutOffTheTextAndItsTokensStay) {
  World world;
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  const base::RequestId id = stream->identity().id;
  ReplyPart part;
  world.engine.Deliver(id, {0, 1, 2}, /*showable=*/1);
  world.engine.Finish(id, {.reason = FinishReason::kStop, .text_bytes = 1, .matched_stop = 0});
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[0].text, "a");
  EXPECT_EQ(part.choices[0].tokens, (Tokens{0, 1, 2}));
  EXPECT_EQ(part.end->choices[0].matched_stop, 0u);
}

TEST(ResponseStream, AStopTokenAddsNoText) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.fields.stop_token_ids = {5};
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  ReplyPart part;
  world.engine.Deliver(id, {1, 5});
  world.RunText();  // before the end is known
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.choices[0].text, "b");
  world.engine.Finish(id, {.reason = FinishReason::kStop, .matched_stop_token = 5});
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[0].text, "");
  EXPECT_EQ(part.end->choices[0].matched_stop_token, 5u);
}

// Row B5: an EOS that the reply goes past is a token like others; as a control token it has no
// text.
TEST(ResponseStream, AnEosThatIsIgnoredStaysAmongTheTokens) {
  World::Options options;
  options.control = {5};
  options.eos_tokens = {5};
  World world(options);
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.fields.ignore_eos = true;
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  world.engine.Deliver(id, {1, 5, 2});
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[0].tokens, (Tokens{1, 5, 2}));
  EXPECT_EQ(part.choices[0].text, "bc");
}

TEST(ResponseStream, WaitingEndsWhenTheFirstStepIsPlannedOrElseWithTheRequest) {
  World world;
  FakeReader reader, other_reader;
  ReplyPart part;
  const auto arrival = world.clock.Now();
  const auto stream = world.MustStart(World::Ids({0}), reader);
  const auto refused = world.MustStart(World::Ids({0}), other_reader);
  world.clock.AdvanceMillis(9);
  world.engine.Deliver(stream->identity().id, {1});
  world.engine.Finish(stream->identity().id,
                      {.reason = FinishReason::kLength, .admitted_at = arrival.PlusMillis(5)});
  world.engine.Finish(refused->identity().id, FinishReason::kShutdown);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.end->queue_ms, 5.0);
  EXPECT_EQ(part.end->first_token_ms, 9.0);
  EXPECT_EQ(refused->Take(part), Taken::kLast);
  EXPECT_EQ(part.end->queue_ms, 9.0);
}

TEST(ResponseStream, AFullBufferPausesTheRequestAndADrainedOneResumesIt) {
  World world(SmallStreams());
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}, 100), reader);
  const base::RequestId id = stream->identity().id;
  world.engine.Deliver(id, {1, 1, 1});
  EXPECT_THAT(world.engine.pauses(), ElementsAre());
  world.engine.Deliver(id, {1});
  world.engine.Deliver(id, {1});  // a step in flight
  EXPECT_THAT(world.engine.pauses(), ElementsAre(true, true));
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  EXPECT_EQ(part.choices[0].tokens.size(), 5u);
  EXPECT_THAT(world.engine.pauses(), ElementsAre(true, true, false));
  world.engine.ReadMail();
  EXPECT_FALSE(world.engine.paused(id));
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  stream->Take(part);
}

TEST(ResponseStream, AReaderThatLeavesTheBufferFullIsEndedAfterTheGraceAndNotBefore) {
  World world(SmallStreams());
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}, 100), reader);
  const base::RequestId id = stream->identity().id;
  world.engine.Deliver(id, {1, 1, 1, 1});
  world.RunText();
  world.clock.AdvanceMillis(9'999);
  world.pipeline.CheckReaders(world.clock.Now());
  EXPECT_EQ(world.engine.num_cancels(), 0);
  world.clock.AdvanceMillis(1);
  world.pipeline.CheckReaders(world.clock.Now());
  world.pipeline.CheckReaders(world.clock.Now());
  EXPECT_EQ(world.engine.num_cancels(), 1);
  world.engine.ReadMail();
  EXPECT_EQ(world.engine.num_live(), 0u);  // its blocks are back although nothing was read
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[0].tokens.size(), 4u);
  EXPECT_EQ(part.end->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(base::ReasonOf(part.end->status), reason::kSlowConsumer);
}

TEST(ResponseStream, AnEndedReplyNobodyReadsIsClosedAfterTheGraceAndGivesItsPermitBack) {
  World world(SmallStreams());
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}, 3), reader);
  world.engine.Deliver(stream->identity().id, {1, 1, 1});
  world.engine.Finish(stream->identity().id, FinishReason::kLength);
  world.RunText();
  world.clock.AdvanceMillis(9'999);
  world.pipeline.CheckReaders(world.clock.Now());
  EXPECT_FALSE(stream->closed());
  world.clock.AdvanceMillis(1);
  world.pipeline.CheckReaders(world.clock.Now());
  EXPECT_TRUE(stream->closed());
  EXPECT_EQ(world.pipeline.num_live(), 0);
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kLast);  // the writer that was stuck comes back
  EXPECT_EQ(base::ReasonOf(part.end->status), reason::kSlowConsumer);
}

TEST(ResponseStream, ACancelDropsWhatWasNotReadAndEndsOnce) {
  World world;
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  world.engine.Deliver(stream->identity().id, {1, 2});
  world.RunText();
  stream->Cancel();
  stream->Cancel();
  EXPECT_EQ(world.engine.num_cancels(), 1);
  world.engine.ReadMail();
  world.RunText();
  EXPECT_TRUE(stream->closed());  // without waiting for the door
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_TRUE(part.choices[0].tokens.empty());
  EXPECT_EQ(part.end->status.code(), absl::StatusCode::kCancelled);
}

TEST(ResponseStream, ACancelAfterTheEndChangesNothing) {
  World world;
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  world.engine.Finish(stream->identity().id, FinishReason::kStop);
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  stream->Cancel();
  EXPECT_EQ(world.engine.num_cancels(), 0);
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_TRUE(part.end->status.ok());
}

TEST(ResponseStream, ACancelBeforePreparationNeverReachesTheEngine) {
  World world;
  FakeReader reader;
  auto stream = world.pipeline.Start(world.caller, World::Ids({0}), reader);
  ASSERT_TRUE(stream.ok());
  (*stream)->Cancel();
  world.RunText();
  EXPECT_TRUE(world.engine.submitted().empty());
  ReplyPart part;
  EXPECT_EQ((*stream)->Take(part), Taken::kLast);
  EXPECT_EQ(part.end->status.code(), absl::StatusCode::kCancelled);
}

// Row A2, A4: bytes that are no text become U+FFFD, on one stream, with the others untouched and
// the end OK.
TEST(ResponseStream, BadBytesBecomeReplacementCharactersAndTheReplyGoesOn) {
  World::Options options;
  options.pieces = {"a", "\xEC\x84", "\xFF", "b", "\xE2\x82", "\xC0\x80", "\xED\xA0\x80", "ok "};
  World world(options);
  FakeReader reader, other_reader;
  const auto stream = world.MustStart(World::Ids({0}), reader);
  const auto other = world.MustStart(World::Ids({0}), other_reader);
  for (base::TokenId token : {7u, 1u, 2u, 0u, 4u, 3u, 5u, 6u}) {
    world.engine.Deliver(stream->identity().id, {token});
    world.engine.Deliver(other->identity().id, {0});
    world.RunText();
  }
  world.engine.Finish(stream->identity().id, FinishReason::kLength);
  world.engine.Finish(other->identity().id, FinishReason::kLength);
  world.RunText();
  JoinedReply joined, joined_other;
  ASSERT_TRUE(joined.TakeAll(*stream));
  EXPECT_TRUE(joined.joined().end->status.ok());
  EXPECT_EQ(joined.joined().choices[0].text,
            "ok \uFFFD\uFFFDa\uFFFDb\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(joined.joined().choices[0].tokens.size(), 8u);
  ASSERT_TRUE(joined_other.TakeAll(*other));
  EXPECT_EQ(joined_other.joined().choices[0].text, "aaaaaaaa");
}

TEST(ResponseStream, ChoicesHaveTextsOfTheirOwnAndStopsOfTheirOwn) {
  World world;
  FakeReader reader;
  CallInput input = World::Ids({0});
  input.fields.n = 3;
  const auto stream = world.MustStart(std::move(input), reader);
  const base::RequestId id = stream->identity().id;
  world.engine.Deliver(id, {1, 2}, engine::TokenDelivery::kNoTextLimit, 0);
  world.engine.Deliver(id, {2, 3}, /*showable=*/1, 2);
  world.RunText();
  ReplyPart part;
  EXPECT_EQ(stream->Take(part), Taken::kPart);
  ASSERT_EQ(part.choices.size(), 3u);
  EXPECT_EQ(part.choices[0].text, "bc");
  EXPECT_FALSE(part.choices[1].has_content());
  EXPECT_EQ(part.choices[2].text, "c");
  EXPECT_EQ(part.choices[2].tokens, (Tokens{2, 3}));
  EXPECT_EQ(stream->num_unread_tokens(), 0u);
  world.engine.Deliver(id, {1}, engine::TokenDelivery::kNoTextLimit, 1);
  world.engine.Finish(id, FinishReason::kLength);
  world.RunText();
  EXPECT_EQ(stream->Take(part), Taken::kLast);
  EXPECT_EQ(part.choices[1].text, "b");
  EXPECT_EQ(part.choices[2].text, "d");
  ASSERT_EQ(part.end->choices.size(), 3u);
  EXPECT_EQ(part.end->choices[2].reason, FinishReason::kLength);
}

// Row A3: a character cut by the end, whatever ended it.
TEST(ResponseStream, ACharacterCutByTheEndBecomesOneReplacementCharacterWhateverTheReason) {
  for (FinishReason why : {FinishReason::kLength, FinishReason::kStop}) {
    World::Options options;
    options.pieces = {"\xF0\x9F\x90", "\xA7", "x"};
    World world(options);
    FakeReader reader;
    const auto stream = world.MustStart(World::Ids({2}), reader);
    world.engine.Deliver(stream->identity().id, {0});
    world.RunText();
    ReplyPart part;
    EXPECT_EQ(stream->Take(part), Taken::kPart);
    EXPECT_EQ(part.choices[0].text, "");
    world.engine.Finish(stream->identity().id, why);
    world.RunText();
    EXPECT_EQ(stream->Take(part), Taken::kLast);
    EXPECT_EQ(part.choices[0].text, "\uFFFD");
    EXPECT_EQ(part.end->reason, why);
  }
}

TEST(ResponseStream, JoiningAnySliceOfTheStreamGivesTheSameReply) {
  const std::vector<std::string> pieces = {"\xE2\x82", "\xAC", "a", "\xF0\x9F", "\x90\xA7", "b"};
  const Tokens script = {0, 1, 2, 3, 4, 5, 0, 2, 3};
  std::string expected;
  for (std::size_t take_every = 1; take_every <= script.size() + 1; ++take_every) {
    World::Options options;
    options.pieces = pieces;
    World world(options);
    FakeReader reader;
    const auto stream = world.MustStart(World::Ids({2}, 20), reader);
    JoinedReply joined;
    for (std::size_t i = 0; i < script.size(); ++i) {
      world.engine.Deliver(stream->identity().id, {script[i]});
      if ((i + 1) % take_every == 0) {
        world.RunText();
        EXPECT_FALSE(joined.TakeAll(*stream));
      }
    }
    world.engine.Finish(stream->identity().id, FinishReason::kLength);
    world.RunText();
    ASSERT_TRUE(joined.TakeAll(*stream));
    if (expected.empty()) expected = joined.joined().choices[0].text;
    EXPECT_EQ(joined.joined().choices[0].text, expected);
    EXPECT_EQ(joined.joined().choices[0].tokens, script);
  }
  EXPECT_EQ(expected, "\u20ACa\U0001F427b\uFFFDa\uFFFD");
}

TEST(ResponseStreamDeathTest, TokensBeyondTheRingAreOurBug) {
  World world(SmallStreams());
  FakeReader reader;
  const auto stream = world.MustStart(World::Ids({0}, 100), reader);
  EXPECT_DEATH(world.engine.Deliver(stream->identity().id, Tokens(17, 1)), "paused request");
  world.engine.Finish(stream->identity().id, FinishReason::kStop);
  world.RunText();
  ReplyPart part;
  stream->Take(part);
}

}  // namespace
}  // namespace pagoda::server
