#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/token_digest.h"
#include "server/config/check_config.h"
#include "server/core/joined_reply.h"
#include "server/server_stack.h"
#include "server/tenant_wiring.h"
#include "tests/fixtures/tiny_model.h"

// Row D9 below the doors, where a reply is joined for those that want it whole (a unary call of any
// door). The streamed half over gRPC is in tests/process/tenants_test.cc.
namespace pagoda::server {
namespace {

class TenantReuse : public testing::Test {
 protected:
  void SetUp() override {
    const auto path =
        std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "-reuse-tiny.gguf");
    config_.model = path.string();
    config_.threads = 1;
    config_.block_size = 4;
    config_.max_num_batched_tokens = 80;
    config_.kv_cache_memory = "1MiB";
    ASSERT_TRUE(fixtures::WriteTinyGguf(config_.model).ok());
    ASSERT_TRUE(CheckConfig(config_).ok());
    config_.tenant_settings.resize(2);
    for (std::size_t i = 0; i < 2; ++i) {
      TenantSettings& tenant = config_.tenant_settings[i];
      tenant.name = i == 0 ? "alpha" : "beta";
      tenant.token_digests = {base::DigestOfToken(tenant.name)};
      tenant.max_queued_requests = 10;
      tenant.max_queued_tokens = 1000;
    }
    authenticator_ = MakeAuthenticator(config_);
    desk_ = std::make_unique<FrontDesk>(*authenticator_);
    auto stack = ServerStack::Load(config_, *desk_, base::SystemClock(), [] { return false; });
    ASSERT_TRUE(stack.ok()) << stack.status().ToString();
    stack_ = *std::move(stack);
    ASSERT_TRUE(stack_->Start().ok());
  }
  void TearDown() override {
    if (stack_ != nullptr) stack_->Drain(base::SystemClock().Now().PlusMillis(60'000));
  }

  // The cached tokens of a joined reply, and its tokens.
  std::pair<std::int32_t, std::vector<base::TokenId>> Ask(const std::string& tenant,
                                                          const std::optional<std::string>& salt) {
    CallInput input;
    TokenPrompt prompt;
    for (base::TokenId i = 0; i < 40; ++i) prompt.push_back(10 + i * 7 % 200);
    input.prompt = std::move(prompt);
    input.fields.max_tokens = 3;
    input.fields.seed = 1;
    input.fields.ignore_eos = true;
    input.cache_salt = salt;
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

  ServerConfig config_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<FrontDesk> desk_;
  std::unique_ptr<ServerStack> stack_;
};

TEST_F(TenantReuse, D9AJoinedReplyReusesThePrefixOfItsTenantAlone) {
  for (const std::optional<std::string>& salt :
       {std::optional<std::string>(), std::optional<std::string>("of alpha")}) {
    const auto cold = Ask("alpha", salt);
    const auto hit = Ask("alpha", salt);
    const auto other = Ask("beta", salt);
    const auto other_hit = Ask("beta", salt);
    EXPECT_EQ(cold.first, 0);
    EXPECT_GE(hit.first, 36);
    EXPECT_EQ(other.first, 0);
    EXPECT_GE(other_hit.first, 36);
    EXPECT_EQ(cold.second, hit.second);
    EXPECT_EQ(cold.second, other.second);
    EXPECT_EQ(cold.second.size(), 3u);
  }
}

}  // namespace
}  // namespace pagoda::server
