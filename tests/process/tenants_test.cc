#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "tests/process/program.h"
#include "tests/process/tenant_calls.h"

// Two tenants with credentials over gRPC.
namespace pagoda::process {
namespace {

using ::grpc::StatusCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

int Cached(const Reply& reply) {
  EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
  return reply.finish.receipt().cached_tokens();
}

// The first half of each pair keeps the second from passing because nothing is ever reused.
TEST(Tenants, D9APrefixIsReusedInsideATenantAndNeverAcross) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants())));
  const auto cached = [&](const std::string& token, std::optional<std::string> salt) {
    return Cached(Generate(*server.stub, {.token = token, .salt = std::move(salt)}));
  };
  for (const std::optional<std::string>& salt :
       {std::optional<std::string>(), std::optional<std::string>(""),
        std::optional<std::string>("of alpha"),
        std::optional<std::string>(std::string(256, '\xFF'))}) {
    EXPECT_EQ(cached(kAlphaToken, salt), 0);
    EXPECT_GE(cached(kAlphaToken, salt), 36);
    // The other tenant sends the same words, and the same salt.
    EXPECT_EQ(cached(kBetaToken, salt), 0);
    EXPECT_GE(cached(kBetaToken, salt), 36);
  }
}

// What a tenant is told does not depend on whether the other one has asked the same before.
TEST(Tenants, TheSameRequestHasTheSameReplyForBoth) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants())));
  const Reply alpha = Generate(*server.stub, {.token = kAlphaToken, .max_tokens = 8});
  const Reply beta = Generate(*server.stub, {.token = kBetaToken, .max_tokens = 8});
  ASSERT_TRUE(alpha.status.ok()) << alpha.status.error_message();
  EXPECT_EQ(alpha.tokens, beta.tokens);
}

TEST(Tenants, ASaltOverItsBoundIsRefusedByItsFieldWhateverItsSize) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants())));
  for (const std::size_t bytes : {std::size_t{257}, std::size_t{1'000'000}}) {
    const Reply reply =
        Generate(*server.stub, {.token = kAlphaToken, .salt = std::string(bytes, 's')});
    EXPECT_EQ(reply.status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(reply.status.error_message(),
                AllOf(HasSubstr("cache_salt"), HasSubstr(std::to_string(bytes))));
  }
  EXPECT_TRUE(Generate(*server.stub, {.token = kAlphaToken}).status.ok());
}

// The client's own id is a label: two requests with one are two requests.
TEST(Tenants, TwoRequestsWithOneClientIdAreBothServed) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants())));
  ::grpc::ClientContext first_context, second_context;
  for (auto* context : {&first_context, &second_context}) {
    context->AddMetadata("authorization", std::string("Bearer ") + kAlphaToken);
  }
  const v1::GenerateRequest request =
      RequestOf({.token = kAlphaToken, .client_request_id = "mine", .max_tokens = 30});
  const auto first = server.stub->Generate(&first_context, request);
  const auto second = server.stub->Generate(&second_context, request);
  const Reply one = ReadAll(*first);
  const Reply two = ReadAll(*second);
  ASSERT_TRUE(one.status.ok() && two.status.ok());
  EXPECT_EQ(one.tokens.size(), 30u);
  EXPECT_EQ(one.tokens, two.tokens);
}

// A tenant that has all inside that it may is told so with the numbers, while the other is served.
TEST(Tenants, OneThatIsFullIsRefusedByNameAndTheOtherServed) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants("max-queued-requests = 1\n"))));
  ::grpc::ClientContext context;
  context.AddMetadata("authorization", std::string("Bearer ") + kAlphaToken);
  const auto running = server.stub->Generate(
      &context, RequestOf({.token = kAlphaToken, .prompt = 4, .max_tokens = 200}));
  v1::GenerateResponse first;
  ASSERT_TRUE(running->Read(&first));
  ::grpc::ClientContext second;
  second.AddMetadata("authorization", std::string("Bearer ") + kAlphaToken);
  const auto refused = server.stub->Generate(&second, RequestOf({.token = kAlphaToken}));
  const Reply reply = ReadAll(*refused);
  EXPECT_EQ(reply.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(reply.status), "QUEUE_FULL");
  EXPECT_THAT(reply.status.error_message(), HasSubstr("tenant alpha has 1 of 1"));
  EXPECT_EQ(second.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_TRUE(Generate(*server.stub, {.token = kBetaToken}).status.ok());
  context.TryCancel();
  ReadAll(*running);
}

TEST(Tenants, TheBundledClientSaysWhoItIsWithATokenFromAFile) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants())));
  const std::string token_file = FreshFile("-alpha.token");
  std::ofstream(token_file) << kAlphaToken << "\n";
  const auto model = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {PAGODA_CLIENT_PATH, "model", "--server",
                                      server.process.address()};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words).code;
  };
  EXPECT_EQ(model({"--token-file", token_file}), 0);
  EXPECT_NE(model({}), 0);
}

TEST(Tenants, NoTokenAndNoDigestIsInTheLog) {
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants()), {"--log-level", "debug"}));
  Generate(*server.stub, {.token = kAlphaToken});
  Generate(*server.stub, {.token = "gamma-token"});
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 0);
  const std::string log = server.process.log();
  for (const std::string& secret : {std::string(kAlphaToken), std::string("gamma-token"),
                                    base::DigestToHex(base::DigestOfToken(kAlphaToken))}) {
    EXPECT_THAT(log, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(log, HasSubstr("tenant alpha: 1 tokens"));
}

// Nothing of it is bound, not even for the time that it takes to see it.
TEST(Tenants, AFileThatIsWrongStopsTheStartBeforeAnythingListens) {
  const auto start = [](const std::string& content) {
    ServerProcess process([&] {
      std::vector<std::string> flags = TenantFlags(TenantsFile(content));
      flags.insert(flags.end(), {"--model", TinyFile()});
      return flags;
    }());
    EXPECT_EQ(process.Wait(), 2);
    EXPECT_FALSE(process.WaitForLog("listening on"));
    return process.log();
  };
  EXPECT_THAT(start("[a]\nweight = 0\n"), HasSubstr("weight = 0"));
  EXPECT_THAT(start(TenantSection("a", kAlphaToken) + TenantSection("b", kAlphaToken)),
              HasSubstr("belongs to tenant a"));
  EXPECT_THAT(start("[a]\nmax-queued-requests = 1024\n[b]\n"),
              AllOf(HasSubstr("adds up to 1024"), HasSubstr("--max-queued-requests")));
}

}  // namespace
}  // namespace pagoda::process
