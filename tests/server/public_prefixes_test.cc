#include "server/public_prefixes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/token_digest.h"
#include "server/config/check_config.h"
#include "server/core/joined_reply.h"
#include "server/core/prompt_encoding.h"
#include "server/server_stack.h"
#include "server/tenant_wiring.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two tenants, and a prefix that only alpha reads.
constexpr std::int64_t kPlenty = std::int64_t{1} << 40;  // of memory

class PublicPrefixes : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::path(testing::TempDir()) /
                      (std::to_string(getpid()) + "-prefixes-tiny.gguf");
    config_.model = path.string();
    config_.threads = 1;
    config_.block_size = 4;
    config_.max_num_batched_tokens = 80;
    config_.kv_cache_memory = "1MiB";
    ASSERT_TRUE(fixtures::WriteTinyGguf(config_.model).ok());
    ASSERT_TRUE(CheckConfig(config_).ok());
    for (const char* const name : {"alpha", "beta"}) {
      TenantSettings& tenant = config_.tenant_settings.emplace_back();
      tenant.name = name;
      tenant.token_digests = {base::DigestOfToken(name)};
      tenant.max_queued_requests = 10;
      tenant.max_queued_tokens = 1000;
    }
    config_.public_prefixes = "prefixes.conf";
    PublicPrefixSettings& prefix = config_.prefix_settings.emplace_back();
    prefix.name = "manual";
    prefix.text = kText;
    prefix.tenants = {"alpha"};
  }
  void TearDown() override {
    if (stack_ != nullptr) stack_->Drain(base::SystemClock().Now().PlusMillis(60'000));
  }

  void Start() {
    authenticator_ = MakeAuthenticator(config_);
    desk_ = std::make_unique<FrontDesk>(*authenticator_);
    auto stack = ServerStack::Load(config_, *desk_, base::SystemClock(), [] { return false; });
    ASSERT_TRUE(stack.ok()) << stack.status();
    stack_ = *std::move(stack);
    ASSERT_TRUE(stack_->Start().ok());
  }

  // Cached tokens and reply of the first prompt of a tenant that begins with the prefix.
  std::pair<std::int32_t, std::vector<base::TokenId>> Ask(const std::string& tenant) {
    CallInput input;
    TextPrompt prompt;
    prompt.text = std::string(kText) + " and more";
    input.prompt = prompt;
    input.fields.max_tokens = 3;
    input.fields.seed = 1;
    input.fields.ignore_eos = true;
    const std::string header = "Bearer " + tenant;
    const auto caller =
        authenticator_->Authenticate({.authorization = {header}, .certificate_names = {}});
    JoinedReply reply;
    auto stream = desk_->installed()->Start(caller.value(), std::move(input), reply);
    EXPECT_TRUE(stream.ok()) << stream.status();
    const ReplyPart& whole = reply.Wait(**stream);
    EXPECT_TRUE(whole.end->status.ok()) << whole.end->status;
    return {whole.end->receipt.cached_tokens, whole.choices.front().tokens};
  }

  static constexpr const char* kText = "this is how every answer begins";
  ServerConfig config_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<FrontDesk> desk_;
  std::unique_ptr<ServerStack> stack_;
};

TEST_F(PublicPrefixes, OneIsComputedBeforeReadyAndReadByThoseItNamesAlone) {
  ASSERT_TRUE(ServerStack::CheckStart(config_, kPlenty).ok())
      << ServerStack::CheckStart(config_, kPlenty);
  Start();
  const auto blocks = desk_->installed()->engine_stats().scheduler.blocks_public;
  EXPECT_GT(blocks, 1);
  const auto alpha = Ask("alpha");
  const auto beta = Ask("beta");
  EXPECT_GT(alpha.first, 4 * (blocks - 2));
  EXPECT_EQ(beta.first, 0);
  EXPECT_EQ(alpha.second, beta.second);
  EXPECT_EQ(desk_->installed()->engine_stats().scheduler.blocks_public, blocks);
}

TEST_F(PublicPrefixes, OneWithoutNamesIsReadByEverybody) {
  config_.prefix_settings.front().tenants.clear();
  Start();
  EXPECT_GT(Ask("beta").first, 0);
}

TEST_F(PublicPrefixes, OneThatDoesNotFitIsRefusedBeforeAnythingIsBoundWithTheNumbers) {
  PublicPrefixSettings& prefix = config_.prefix_settings.front();
  for (int i = 0; i < 10; ++i) prefix.text += prefix.text.substr(0, 200) + " and on";
  config_.max_model_len = 64;
  EXPECT_THAT(ServerStack::CheckStart(config_, kPlenty).message(),
              AllOf(HasSubstr("--public-prefixes prefixes.conf: prefix manual"),
                    HasSubstr("64 (--max-model-len)")));
}

TEST_F(PublicPrefixes, OnesThatLeaveNoRoomForARequestAreRefusedWithTheNumbers) {
  const std::vector<EncodedPrefix> prefixes = {{"a", std::vector<base::TokenId>(9), {}},
                                               {"b", std::vector<base::TokenId>(4), {}}};
  EXPECT_EQ(PublicBlocksOf(prefixes, 4), 4);
  scheduler::SchedulerConfig scheduling;
  scheduling.pool_blocks_per_group = {8};
  scheduling.block_size = 4;
  scheduling.max_model_len = 12;
  scheduling.public_blocks = 4;
  EXPECT_TRUE(CheckPrefixes(config_, prefixes, scheduling).ok());
  scheduling.pool_blocks_per_group = {7};
  EXPECT_THAT(CheckPrefixes(config_, prefixes, scheduling).message(),
              AllOf(HasSubstr("4 of the pool's 6 blocks"), HasSubstr("of the 2 left"),
                    HasSubstr("needs 3")));
}

// An isolated tenant holds no more than its reserve, however much room there is.
TEST_F(PublicPrefixes, OneThatNoTenantMayHoldIsRefusedByNameWithTheNumbers) {
  const std::vector<EncodedPrefix> prefixes = {{"rules", std::vector<base::TokenId>(9), {}}};
  scheduler::SchedulerConfig scheduling;
  scheduling.pool_blocks_per_group = {60};
  scheduling.block_size = 4;
  scheduling.max_model_len = 12;
  scheduling.public_blocks = 3;
  scheduling.tenants = {{.name = "a", .reserve_blocks = 2, .isolated = true},
                        {.name = "b", .reserve_blocks = 3, .isolated = true}};
  EXPECT_TRUE(CheckPrefixesAreHeld(config_, prefixes, scheduling).ok());
  scheduling.tenants[1].reserve_blocks = 2;
  EXPECT_THAT(CheckPrefixesAreHeld(config_, prefixes, scheduling).message(),
              AllOf(HasSubstr("prefix rules"), HasSubstr("9 tokens, which are 3 blocks"),
                    HasSubstr("hold more than 2"), HasSubstr("reserve-blocks")));
}

// What the cache ages is the scheduler's to test; here, that the flag reaches it.
TEST_F(PublicPrefixes, TheFlagForOldBlocksDropsThem) {
  config_.cached_block_ttl_ms = 1;
  Start();
  const auto first = Ask("beta");
  // The figures follow the reply: wait for those that know of its three tokens and hold no block.
  for (;;) {
    const scheduler::SchedulerStats seen = desk_->installed()->engine_stats().scheduler;
    const auto held =
        seen.blocks_owned + seen.blocks_sealed + seen.blocks_retiring + seen.blocks_cached;
    if (seen.generated_tokens >= 3 && held == 0) break;
    std::this_thread::yield();
  }
  EXPECT_EQ(Ask("beta").first, 0);
  EXPECT_EQ(first.first, 0);
}

}  // namespace
}  // namespace pagoda::server
