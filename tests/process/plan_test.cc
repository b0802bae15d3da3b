// The planner against the server itself: what `pagoda plan` says is what a real server then
// reports.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "tests/client/command_session.h"
#include "tests/fixtures/chain_model.h"
#include "tests/fixtures/tiny_model.h"
#include "tests/process/family_folder.h"
#include "tests/process/program.h"
#include "tests/process/server_process.h"

namespace pagoda::process {
namespace {

using testing::HasSubstr;

struct Choice {
  int context, batch, block_size;
  std::string kv_type;
  std::string target = "cpu", device = "cpu";
};

// Starts a server with the pool that the plan asks for and compares every figure.
void ExpectServerAgrees(const std::string& model, const Choice& choice) {
  SCOPED_TRACE(absl::StrCat(model, ", context ", choice.context, ", KV ", choice.kv_type));
  const std::vector<std::string> shared = {"--max-model-len",  std::to_string(choice.context),
                                           "--max-num-seqs",   std::to_string(choice.batch),
                                           "--block-size",     std::to_string(choice.block_size),
                                           "--kv-cache-dtype", choice.kv_type};
  client::CommandSession session;
  std::vector<std::string> asked = {"plan", model,      "--json",     "--memory",
                                    "4GiB", "--target", choice.target};
  asked.insert(asked.end(), shared.begin(), shared.end());
  ASSERT_EQ(session.Run(asked), client::kExitOk) << session.text();
  const auto plan = nlohmann::json::parse(session.text());

  std::vector<std::string> flags = {
      "--model",           model,
      "--device",          choice.device,
      "--kv-cache-memory", std::to_string(plan["pool_bytes"].get<std::int64_t>())};
  flags.insert(flags.end(), shared.begin(), shared.end());
  ServerProcess server(flags);
  ASSERT_TRUE(server.WaitForLog("serving ")) << server.log();
  const auto stub = v1::InferenceService::NewStub(
      ::grpc::CreateChannel(server.address(), ::grpc::InsecureChannelCredentials()));
  ::grpc::ClientContext context;
  v1::Model reported;
  ASSERT_TRUE(stub->GetModel(&context, {}, &reported).ok());
  EXPECT_EQ(plan["weight_bytes"], reported.weight_bytes());
  EXPECT_EQ(plan["num_parameters"], reported.num_parameters());
  EXPECT_EQ(plan["weight_format"], reported.weight_format());
  EXPECT_EQ(plan["activation_dtype"], reported.activation_dtype());
  EXPECT_EQ(plan["kv_cache_dtype"], reported.kv_cache_dtype());
  EXPECT_EQ(plan["kv_bytes_per_token"], reported.kv_bytes_per_token());
  EXPECT_EQ(plan["context"], reported.max_model_len());
  EXPECT_EQ(plan["block_size"], reported.block_size());
  EXPECT_EQ(plan["pool_blocks"], reported.num_kv_blocks());
  // The server's own words for one block and one full request.
  EXPECT_THAT(
      server.log(),
      HasSubstr(absl::StrCat("; ", plan["kv_bytes_per_block"].get<std::int64_t>(),
                             " bytes per block, ", plan["blocks_per_request"].get<std::int64_t>(),
                             " blocks for a request of full length")));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST(PlanAgainstServer, AgreesOnTheQuantizedTinyModel) {
  const std::string path = fixtures::TemporaryPath("planned-tiny.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path).ok());
  ExpectServerAgrees(path, {.context = 256, .batch = 64, .block_size = 4, .kv_type = "bf16"});
  ExpectServerAgrees(path, {.context = 101, .batch = 3, .block_size = 16, .kv_type = "f32"});
}

TEST(PlanAgainstServer, AgreesOnFloatWeightsWithAHeadOfTheirOwn) {
  const std::string path = fixtures::TemporaryPath("planned-floats.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path, {.weight_type = formats::GgufType::kBf16,
                                             .embedding_type = formats::GgufType::kF32,
                                             .tied = false})
                  .ok());
  ExpectServerAgrees(path, {.context = 200, .batch = 7, .block_size = 8, .kv_type = "auto"});
}

TEST(PlanAgainstServer, AgreesOnTheChainModel) {
  const std::string path = fixtures::TemporaryPath("planned-chain.gguf");
  fixtures::ChainScript script;
  script.pieces = {"one", "two"};
  ASSERT_TRUE(fixtures::WriteChainGguf(path, std::vector{script}).ok());
  ExpectServerAgrees(path, {.context = 4096, .batch = 16, .block_size = 16, .kv_type = "bf16"});
}

TEST(PlanAgainstServer, AgreesOnTheShippedModel) {
  ExpectServerAgrees(PAGODA_SOURCE_DIR "/models/tiny",
                     {.context = 1500, .batch = 6, .block_size = 16, .kv_type = "auto"});
}

// Its head is its embedding, which that backend packs for both uses.
TEST(PlanAgainstServer, AgreesOnWhatAGpuHolds) {
  ExpectServerAgrees(PAGODA_SOURCE_DIR "/models/tiny", {.context = 64,
                                                        .batch = 2,
                                                        .block_size = 16,
                                                        .kv_type = "bf16",
                                                        .target = "80GiB",
                                                        .device = "emulated-cuda"});
}

TEST(PlanAgainstServer, TheCommandThatItPrintsIsOneThatTheServerTakes) {
  const std::string path = fixtures::TemporaryPath("planned, it's mine.gguf");
  ASSERT_TRUE(fixtures::WriteTinyGguf(path).ok());
  client::CommandSession session;
  ASSERT_EQ(session.Run({"plan", path, "--memory", "4GiB", "--batch", "600", "--context", "64",
                         "--activation-dtype", "f32"}),
            client::kExitOk);
  const std::string text = session.text(), before = "Serve it: pagoda-server ";
  const std::size_t found = text.find(before);
  ASSERT_NE(found, std::string::npos) << text;
  const Ran ran = RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat(PAGODA_SERVER_PATH, " --check-config ", text.substr(found + before.size()))});
  EXPECT_EQ(ran.code, 0) << ran.output;
  std::filesystem::remove(path);
}

TEST(PlanAgainstServer, AgreesOnFoldersOfEveryFamilyOneInShards) {
  for (const char* const family : {"llama", "mistral", "qwen2"}) {
    const FamilyFolder folder(family);
    ExpectServerAgrees(folder.path(),
                       {.context = 320, .batch = 5, .block_size = 16, .kv_type = "auto"});
  }
}

}  // namespace
}  // namespace pagoda::process
