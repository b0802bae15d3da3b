// The fourth of the standing equalities: a reply that is read piece by piece is, to the bit, the
// reply that is read whole; with three choices and every parameter that a request can have, over
// a real model, however slowly and in whatever company it is read.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/counter_rng.h"
#include "server/config/check_config.h"
#include "server/core/joined_reply.h"
#include "server/server_stack.h"
#include "tests/fixtures/chain_model.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::server {
namespace {

constexpr std::uint64_t kSeed = 20;
constexpr std::int32_t kNumChoices = 3;

// Everything of a reply but the times and what company changes, as plain values to compare.
struct Content {
  std::string prompt_text;
  std::vector<base::TokenId> prompt_tokens;
  std::vector<std::uint32_t> prompt_scores;
  struct Choice {
    std::string text;
    std::vector<base::TokenId> tokens;
    std::vector<std::uint32_t> scores;
    scheduler::FinishReason reason = scheduler::FinishReason::kStop;
    std::optional<std::uint32_t> matched_stop;
    std::optional<base::TokenId> matched_stop_token;
    bool operator==(const Choice&) const = default;
  };
  std::vector<Choice> choices = std::vector<Choice>(kNumChoices);
  std::uint64_t seed = 0;
  std::int32_t max_tokens = 0;
  std::int32_t generated_tokens = 0;
  bool operator==(const Content&) const = default;
};

void AppendBits(const ScoreList& list, std::vector<std::uint32_t>& bits) {
  for (const base::TokenScore& score : list.scores) {
    bits.insert(bits.end(), {score.of.token, std::bit_cast<std::uint32_t>(score.of.logprob),
                             score.rank, score.num_alternatives});
    for (const base::TokenLogprob& each : list.AlternativesOf(score)) {
      bits.insert(bits.end(), {each.token, std::bit_cast<std::uint32_t>(each.logprob)});
    }
  }
}

void Append(const ReplyPart& part, Content& content) {
  content.prompt_text += part.prompt.text;
  content.prompt_tokens.insert(content.prompt_tokens.end(), part.prompt.tokens.begin(),
                               part.prompt.tokens.end());
  AppendBits(part.prompt.scores, content.prompt_scores);
  for (std::size_t c = 0; c < part.choices.size(); ++c) {
    Content::Choice& choice = content.choices[c];
    choice.text += part.choices[c].text;
    choice.tokens.insert(choice.tokens.end(), part.choices[c].tokens.begin(),
                         part.choices[c].tokens.end());
    AppendBits(part.choices[c].scores, choice.scores);
  }
}

void SetEnd(const ReplyEnd& end, Content& content) {
  ASSERT_TRUE(end.status.ok()) << end.status;
  ASSERT_EQ(end.choices.size(), content.choices.size());
  for (std::size_t c = 0; c < end.choices.size(); ++c) {
    content.choices[c].reason = end.choices[c].reason;
    content.choices[c].matched_stop = end.choices[c].matched_stop;
    content.choices[c].matched_stop_token = end.choices[c].matched_stop_token;
  }
  content.seed = end.seed;
  content.max_tokens = end.max_tokens;
  content.generated_tokens = end.receipt.generated_tokens;
}

// A reader of one message at a time.
class Door final : public ReplyListener {
 public:
  void OnReplyReady() override {
    base::MutexLock lock(mutex_);
    ready_ = true;
    changed_.NotifyAll();
  }

  // Reads to the end; `before_each` runs before every take.
  Content ReadApart(ResponseStream& stream, const std::function<void()>& before_each) {
    Content content;
    ReplyPart part;
    for (;;) {
      before_each();
      const ResponseStream::Taken taken = stream.Take(part);
      if (taken == ResponseStream::Taken::kNothing) {
        base::MutexLock lock(mutex_);
        while (!ready_) changed_.Wait(mutex_);
        ready_ = false;
        continue;
      }
      ++num_parts_;
      Append(part, content);
      if (taken != ResponseStream::Taken::kLast) continue;
      SetEnd(*part.end, content);
      return content;
    }
  }
  int num_parts() const { return num_parts_; }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool ready_ PAGODA_GUARDED_BY(mutex_) = false;
  int num_parts_ = 0;
};

void SetFilters(std::uint64_t i, scheduler::RequestFields& fields) {
  fields.temperature = i % 4 == 3 ? 0.0f : 0.9f;
  fields.top_p = 0.98f;
  fields.top_k = static_cast<std::int32_t>(i % 3 * 100);
  fields.min_p = 0.0005f;
  fields.presence_penalty = 0.3f;
  fields.frequency_penalty = -0.2f;
  fields.repetition_penalty = 1.1f;
  fields.logit_bias = {{static_cast<base::TokenId>(20 + i), 2.5f}, {300, -50.0f}};
  if (i % 3 == 1) {
    fields.allowed_token_ids.emplace();
    for (base::TokenId token = 1; token < 259; token += 2)
      fields.allowed_token_ids->push_back(token);
  }
}

CallInput Ask(std::uint64_t i) {
  CallInput input;
  std::string prompt = "A prompt that they all begin with, and then ";
  for (std::uint32_t c = 0; c < 5 + i; ++c) {
    prompt += static_cast<char>('a' + base::Philox4x32({c, 0, 0, 0}, kSeed + i)[0] % 26);
  }
  input.prompt = TextPrompt{prompt, false, std::nullopt};
  scheduler::RequestFields& fields = input.fields;
  SetFilters(i, fields);
  fields.seed = kSeed + i;
  fields.n = kNumChoices;
  fields.max_tokens = static_cast<std::int32_t>(30 + 10 * i);
  fields.min_tokens = 12;
  fields.ignore_eos = i % 2 == 0;
  fields.include_stop_string = i % 3 == 0;
  fields.stop_token_ids = {40, 41};
  if (i % 5 == 4) {
    fields.logprob_token_ids = {7, 300, 7};
  } else {
    fields.logprobs = static_cast<std::int32_t>(i % 8);
  }
  if (i % 2 == 1) fields.prompt_logprobs = static_cast<std::int32_t>(i % 4);
  // The bytes of letters: often the start of a match, now and then a whole one.
  input.stops = {"e", "ab", "\n\n"};
  if (i % 2 == 0) input.stops = {"qqq"};
  input.bad_words = {"the", "x", " y"};
  input.output.echo = i % 2 == 0;
  input.output.skip_special_tokens = i % 4 < 2;
  return input;
}

constexpr char kShippedModel[] = PAGODA_SOURCE_DIR "/models/tiny";

enum class Files { kTiny, kChain, kShipped };  // the last: models/tiny

struct Serving {
  std::string name, device, activation_dtype;
  Files files;
  std::uint64_t first_request, num_requests;
  std::int32_t most_tokens;  // of a choice
  int least_ends;            // choices that end so, of each way to end
};
void PrintTo(const Serving& serving, std::ostream* out) { *out << serving.name; }

std::string PathOf(Files files) {
  if (files == Files::kShipped) return kShippedModel;
  const bool is_chain = files == Files::kChain;
  const std::string name =
      std::to_string(getpid()) + (is_chain ? "-stream-chain.gguf" : "-stream-tiny.gguf");
  std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
  PAGODA_CHECK((is_chain ? fixtures::WriteRingGguf(path) : fixtures::WriteTinyGguf(path)).ok());
  return path;
}

class StreamIsUnary : public testing::TestWithParam<Serving> {
 protected:
  void SetUp() override {
    std::cerr << "seed " << kSeed << "\n";
    config_.model = PathOf(GetParam().files);
    config_.device = GetParam().device;
    config_.activation_dtype = GetParam().activation_dtype;
    config_.threads = 2;
    config_.block_size = 4;
    config_.max_model_len = 256;
    config_.max_num_batched_tokens = 80;
    config_.kv_cache_memory = "2MiB";
    ASSERT_TRUE(CheckConfig(config_).ok());
    auto stack = ServerStack::Load(config_, desk_, base::SystemClock(), [] { return false; });
    ASSERT_TRUE(stack.ok()) << stack.status().ToString();
    stack_ = *std::move(stack);
    ASSERT_TRUE(stack_->Start().ok());
    for (std::uint64_t i = 0; i < num_requests_; ++i) whole_.push_back(ReadWhole(i));
  }
  void TearDown() override { stack_->Drain(base::SystemClock().Now()); }

  ResponseStreamRef Start(std::uint64_t i, ReplyListener& listener) {
    CallInput input = Ask(GetParam().first_request + i);
    input.fields.max_tokens = std::min(*input.fields.max_tokens, GetParam().most_tokens);
    auto stream = desk_.installed()->Start(authenticator_.ServersOwn(), std::move(input), listener);
    PAGODA_CHECK_MSG(stream.ok(), stream.status().ToString());
    return *std::move(stream);
  }

  Content ReadWhole(std::uint64_t i) {
    JoinedReply reply;
    const auto stream = Start(i, reply);
    const ReplyPart& joined = reply.Wait(*stream);
    Content content;
    Append(joined, content);
    SetEnd(*joined.end, content);
    return content;
  }

  const std::uint64_t num_requests_ = GetParam().num_requests;
  const Authenticator authenticator_{Authenticator::Mode::kOneTenant, {}};
  FrontDesk desk_{authenticator_};
  ServerConfig config_;
  std::unique_ptr<ServerStack> stack_;
  std::vector<Content> whole_;
};

TEST_P(StreamIsUnary, TheWholeRepliesShowEveryParameterAtWork) {
  int num_stopped = 0, num_full = 0;
  for (std::uint64_t i = 0; i < num_requests_; ++i) {
    const Content& whole = whole_[i];
    const std::uint64_t number = GetParam().first_request + i;
    const bool is_greedy = number % 4 == 3;
    if (GetParam().files != Files::kChain) {  // where the next token is sure
      EXPECT_EQ(whole.choices[0] == whole.choices[1], is_greedy) << number;
    }
    EXPECT_EQ(!whole.prompt_text.empty(), number % 2 == 0);
    EXPECT_EQ(!whole.prompt_scores.empty(), number % 2 == 1);
    for (const Content::Choice& choice : whole.choices) {
      EXPECT_FALSE(choice.scores.empty());
      num_stopped += choice.reason == scheduler::FinishReason::kStop ? 1 : 0;
      num_full += choice.reason == scheduler::FinishReason::kLength ? 1 : 0;
    }
  }
  EXPECT_GE(num_stopped, GetParam().least_ends);
  EXPECT_GE(num_full, GetParam().least_ends);
}

TEST_P(StreamIsUnary, ReadMessageByMessage) {
  int num_parts = 0;
  for (std::uint64_t i = 0; i < num_requests_; ++i) {
    Door door;
    const auto stream = Start(i, door);
    EXPECT_EQ(door.ReadApart(*stream, [] {}), whole_[i]) << i;
    num_parts += door.num_parts();
  }
  EXPECT_GT(num_parts, static_cast<int>(num_requests_));
}

// Between two looks of such a reader another request is answered whole, so that much has gathered,
// or has had to wait for room.
TEST_P(StreamIsUnary, ReadByOneThatSeldomLooks) {
  for (std::uint64_t i = 0; i < num_requests_; ++i) {
    Door door;
    const auto stream = Start(i, door);
    const std::uint64_t other = (i + 1) % num_requests_;
    EXPECT_EQ(door.ReadApart(*stream, [&] { EXPECT_EQ(ReadWhole(other), whole_[other]); }),
              whole_[i])
        << i;
  }
}

TEST_P(StreamIsUnary, ReadInCompany) {
  std::vector<std::jthread> clients;
  std::vector<Content> contents(2 * num_requests_);
  for (std::uint64_t c = 0; c < contents.size(); ++c) {
    clients.emplace_back([&, c] {
      Door door;
      const auto stream = Start(c % num_requests_, door);
      contents[c] = door.ReadApart(*stream, [] { std::this_thread::yield(); });
    });
  }
  clients.clear();
  for (std::uint64_t c = 0; c < contents.size(); ++c) {
    EXPECT_EQ(contents[c], whole_[c % num_requests_]) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, StreamIsUnary,
    testing::Values(Serving{"cpu", "cpu", "auto", Files::kTiny, 0, 12, 1000, 6},
                    Serving{"cpu_f32", "cpu", "f32", Files::kTiny, 0, 6, 1000, 3},
                    Serving{"chain", "cpu", "int8", Files::kChain, 0, 6, 1000, 3},
                    Serving{"chain_f32", "cpu", "f32", Files::kChain, 0, 6, 1000, 3},
                    Serving{"shipped", "cpu", "auto", Files::kShipped, 0, 12, 1000, 1},
                    Serving{"cuda", "emulated-cuda", "auto", Files::kTiny, 6, 5, 28, 1}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace pagoda::server
