#include "server/grpc/call_gate.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/token_digest.h"
#include "tests/server/grpc/door_world.h"
#include "tests/server/grpc/rpc_walk.h"

namespace pagoda::server {
namespace {

using ::grpc::StatusCode;
using rpcs::AllMethods;
using rpcs::CallAny;

const std::string kHealth = "/grpc.health.v1.Health/";

World::Options TwoTenants() {
  World::Options options;
  options.tenants = {{.name = "alpha",
                      .token_digests = {base::DigestOfToken("alpha-token")},
                      .certificate_names = {}},
                     {.name = "beta",
                      .token_digests = {base::DigestOfToken("beta-token")},
                      .certificate_names = {}}};
  return options;
}

rpcs::Metadata Bearer(const std::string& token) { return {{"authorization", "Bearer " + token}}; }

// What a caller can do wrong without a certificate; the rest of the walk is in
// tests/process/tenants_test.cc.
const std::vector<std::pair<std::string, rpcs::Metadata>>& Faults() {
  static const std::vector<std::pair<std::string, rpcs::Metadata>> faults = {
      {"none", {}},
      {"malformed", {{"authorization", "Bearer "}}},
      {"unknown token", Bearer("gamma-token")},
      {"wrong scheme", {{"authorization", "Basic alpha-token"}}},
      {"sent twice", {{"authorization", "Bearer alpha-token"}, {"authorization", "Bearer x"}}},
  };
  return faults;
}

TEST(CallGate, NoMethodOfAnyServiceButHealthAnswersWithoutACredential) {
  DoorWorld door(TwoTenants());
  const std::vector<std::string> methods = AllMethods(door.channel, Bearer("alpha-token"));
  EXPECT_GE(methods.size(), 6u + 2u + 1u);  // inference, health, reflection
  std::int64_t num_refused = 0;
  for (const std::string& method : methods) {
    if (method.starts_with(kHealth)) continue;
    for (const auto& [fault, metadata] : Faults()) {
      const auto call = CallAny(door.channel, method, metadata);
      EXPECT_EQ(call.status.error_code(), StatusCode::UNAUTHENTICATED) << method << ", " << fault;
      EXPECT_TRUE(call.replies.empty()) << method << ", " << fault;
      EXPECT_EQ(call.status.error_message().find("alpha"), std::string::npos);
      ++num_refused;
    }
  }
  // What does not exist is not told from what does.
  EXPECT_EQ(CallAny(door.channel, "/pagoda.v1.InferenceService/Nothing", {}).status.error_code(),
            StatusCode::UNAUTHENTICATED);
  ++num_refused;
  // Nothing has happened but the refusals.
  EXPECT_EQ(door.world.desk.num_unauthenticated(), num_refused);
  EXPECT_TRUE(door.world.engine.submitted().empty());
  EXPECT_EQ(door.world.pipeline.metrics().requests_accepted.value(), 0);
  EXPECT_EQ(door.world.pipeline.metrics().requests_refused.value(), 0);
  EXPECT_EQ(door.world.pipeline.num_live(), 0);
}

TEST(CallGate, WithACredentialEveryMethodIsReached) {
  DoorWorld door(TwoTenants());
  for (const std::string& method : AllMethods(door.channel, Bearer("beta-token"))) {
    if (method.starts_with(kHealth)) continue;
    EXPECT_NE(CallAny(door.channel, method, Bearer("beta-token")).status.error_code(),
              StatusCode::UNAUTHENTICATED)
        << method;
  }
  EXPECT_EQ(door.world.desk.num_unauthenticated(), 0);
}

TEST(CallGate, ProbesNeedNoCredential) {
  DoorWorld door(TwoTenants());
  const auto health = CallAny(door.channel, kHealth + "Check", {});
  EXPECT_TRUE(health.status.ok()) << health.status.error_message();
  EXPECT_EQ(health.replies.size(), 1u);
}

// Two callers over one connection, as behind a proxy: gRPC keeps what it knows of a peer by
// connection.
TEST(CallGate, CallsOverOneConnectionAreEachTheirOwnCallers) {
  DoorWorld door(TwoTenants(), /*engine_runs=*/false);
  const auto start = [&](const std::string& token) {
    auto context = std::make_unique<::grpc::ClientContext>();
    context->AddMetadata("authorization", "Bearer " + token);
    auto reader = door.stub->Generate(context.get(), TextRequest("a", 5));
    return std::pair(std::move(context), std::move(reader));
  };
  const auto alpha = start("alpha-token");
  while (door.world.engine.submitted().size() < 1) std::this_thread::yield();
  const auto beta = start("beta-token");
  while (door.world.engine.submitted().size() < 2) std::this_thread::yield();
  const auto nobody = start("gamma-token");
  EXPECT_EQ(ReadAll(*nobody.second).status.error_code(), StatusCode::UNAUTHENTICATED);
  door.world.engine.ReadMail();
  const std::vector<base::RequestId> ids = door.world.engine.submitted();
  const auto& of_alpha = door.world.engine.request(ids[0]);
  const auto& of_beta = door.world.engine.request(ids[1]);
  EXPECT_EQ(of_alpha.tenant, base::TenantId{0});
  EXPECT_EQ(of_beta.tenant, base::TenantId{1});
  EXPECT_NE(*of_alpha.cache_namespace, *of_beta.cache_namespace);
  while (door.world.engine.StepAll(8)) {
  }
  EXPECT_TRUE(ReadAll(*alpha.second).status.ok());
  EXPECT_TRUE(ReadAll(*beta.second).status.ok());
}

TEST(CallGate, WithoutTenantsNobodyIsAsked) {
  DoorWorld door;
  EXPECT_TRUE(Generate(*door.stub, TextRequest("a", 2)).status.ok());
  ::grpc::ClientContext context;
  context.AddMetadata("authorization", "Basic whatever");
  EXPECT_TRUE(ReadAll(*door.stub->Generate(&context, TextRequest("a", 2))).status.ok());
}

}  // namespace
}  // namespace pagoda::server
