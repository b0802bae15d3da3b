#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/tenant_calls.h"

// What operators do to a whole server with tenants while it serves.
namespace pagoda::process {
namespace {

using ::grpc::StatusCode;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kNewToken = "new-alpha-token-of-more-than-thirty-two-characters";

class TenantOperations : public testing::Test {
 protected:
  void Write(const std::string& content) const { std::ofstream(file_) << content; }
  ::grpc::Status Reload(v1::ReloadResponse& response) {
    ::grpc::ClientContext context;
    return server_.admin->Reload(&context, {}, &response);
  }
  StatusCode Code(const std::string& token) {
    return Generate(*server_.stub, {.token = token}).status.error_code();
  }
  int Cached(const std::string& token) {
    return Generate(*server_.stub, {.token = token}).finish.receipt().cached_tokens();
  }

  const std::string file_ = TenantsFile(TwoTenants());
  Server server_{TinyFile(), TenantFlags(file_)};
};

TEST_F(TenantOperations, AReloadReplacesCredentialsAndNoReplyIsCut) {
  ::grpc::ClientContext context;
  context.AddMetadata("authorization", std::string("Bearer ") + kAlphaToken);
  const v1::GenerateRequest request =
      RequestOf({.token = kAlphaToken, .prompt = 4, .max_tokens = 200});
  const auto running = server_.stub->Generate(&context, request);
  v1::GenerateResponse first;
  ASSERT_TRUE(running->Read(&first));
  Write(TenantSection("beta", kBetaToken) +
        TenantSection("alpha", kNewToken, "weight = 3\nreserve-blocks = 10\n"));
  v1::ReloadResponse response;
  const ::grpc::Status status = Reload(response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Code(kNewToken), StatusCode::OK);
  EXPECT_EQ(Code(kBetaToken), StatusCode::OK);
  EXPECT_EQ(Code(kAlphaToken), StatusCode::UNAUTHENTICATED);
  const Reply reply = ReadAll(*running);
  EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.finish.receipt().generated_tokens(), 200);
}

TEST_F(TenantOperations, AHangUpReloadsToo) {
  Write(TenantSection("alpha", kNewToken) + TenantSection("beta", kBetaToken));
  server_.process.Signal(SIGHUP);
  ASSERT_TRUE(server_.process.WaitForLog("reload: 2 tenants")) << server_.process.log();
  EXPECT_EQ(Code(kNewToken), StatusCode::OK);
  EXPECT_EQ(Code(kAlphaToken), StatusCode::UNAUTHENTICATED);
}

TEST_F(TenantOperations, AFileThatIsWrongChangesNothingAndSaysWhy) {
  struct Bad {
    std::string content;
    std::vector<std::string> said;
  };
  const std::string new_alpha = TenantSection("alpha", kNewToken);
  for (const Bad& bad : std::vector<Bad>{
           {TwoTenants("weight = 0\n"), {"weight = 0", "1 to 1000000"}},
           {new_alpha + TenantSection("beta", kNewToken), {"belongs to tenant alpha"}},
           {new_alpha, {"tenant beta is no longer"}},
           {new_alpha + TenantSection("beta", kBetaToken) + "[gamma]\n",
            {"tenant gamma is unknown"}},
           {new_alpha + TenantSection("beta", kBetaToken, "isolated = true\n"),
            {"tenant beta, isolated"}},
           {new_alpha + TenantSection("beta", kBetaToken, "reserve-blocks = 100000000\n"),
            {"--tenants"}},
           {"", {"cannot be read or is empty"}}}) {
    Write(bad.content);
    v1::ReloadResponse response;
    const ::grpc::Status status = Reload(response);
    EXPECT_FALSE(status.ok()) << bad.content;
    for (const std::string& said : bad.said) {
      EXPECT_THAT(status.error_message(), HasSubstr(said));
    }
    EXPECT_EQ(Code(kAlphaToken), StatusCode::OK) << bad.content;
    EXPECT_EQ(Code(kNewToken), StatusCode::UNAUTHENTICATED) << bad.content;
  }
  EXPECT_THAT(server_.process.log(), HasSubstr("reload: nothing has changed"));
}

// Row D8: a flush says what it did, and touches nobody else's blocks.
TEST_F(TenantOperations, AFlushDropsTheBlocksOfTheTenantThatItNames) {
  EXPECT_EQ(Cached(kAlphaToken), 0);
  EXPECT_GT(Cached(kAlphaToken), 0);
  EXPECT_EQ(Cached(kBetaToken), 0);
  EXPECT_GT(Cached(kBetaToken), 0);
  const auto flush = [&](const std::optional<std::string>& tenant) {
    ::grpc::ClientContext context;
    v1::FlushPrefixCacheRequest request;
    if (tenant.has_value()) request.set_tenant(*tenant);
    v1::FlushPrefixCacheResponse response;
    EXPECT_TRUE(server_.admin->FlushPrefixCache(&context, request, &response).ok());
    return response.blocks_dropped();
  };
  EXPECT_GT(flush("alpha"), 0);
  EXPECT_GT(Cached(kBetaToken), 0);
  EXPECT_EQ(Cached(kAlphaToken), 0);
  EXPECT_GT(flush(std::nullopt), 0);
  EXPECT_EQ(Cached(kBetaToken), 0);
}

TEST_F(TenantOperations, StatsTellTheTenantsApart) {
  EXPECT_EQ(Code(kAlphaToken), StatusCode::OK);
  EXPECT_EQ(Code(kAlphaToken), StatusCode::OK);
  EXPECT_EQ(Code("gamma-token"), StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(server_.AwaitStats([](const v1::Stats& stats) {
    return stats.tenants_size() == 2 && stats.tenants(0).name() == "alpha" &&
           stats.tenants(0).running() == 0 && stats.tenants(0).generated_tokens() >= 4 &&
           stats.tenants(1).generated_tokens() == 0 && stats.requests().unauthenticated() == 1;
  }));
}

TEST_F(TenantOperations, AnOperatorsDrainEndsTheServerLikeASignal) {
  ::grpc::ClientContext context;
  v1::DrainResponse response;
  ASSERT_TRUE(server_.admin->Drain(&context, {}, &response).ok());
  EXPECT_EQ(server_.process.Wait(), 0);
  EXPECT_THAT(server_.process.log(), AllOf(HasSubstr("draining"), HasSubstr("stopped")));
}

TEST(TenantOperationsWithoutTenants, ThereIsNothingToReload) {
  Server server(TinyFile(), kTinyFlags);
  ::grpc::ClientContext context;
  v1::ReloadResponse response;
  const ::grpc::Status status = server.admin->Reload(&context, {}, &response);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--tenants"));
}

}  // namespace
}  // namespace pagoda::process
