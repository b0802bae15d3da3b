// The server on the CUDA kernels, played by the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/process/server_fixture.h"

namespace pagoda::process {
namespace {

using testing::HasSubstr;
using testing::Not;

// TINY64: bf16 weights, heads of 64, blocks of 16.
std::string Tiny64File() {
  const std::string path = FreshFile("-tiny64.gguf");
  const fixtures::TinyOptions tiny = {.weight_type = formats::GgufType::kBf16,
                                      .embedding_type = formats::GgufType::kBf16,
                                      .tied = false,
                                      .head_size = 64};
  const absl::Status written = fixtures::WriteTinyGguf(path, tiny);
  EXPECT_TRUE(written.ok()) << written.ToString();
  return path;
}

std::vector<std::string> FlagsFor(const std::string& device) {
  return {"--device", device, "--kv-cache-memory", "16MiB", "--max-num-batched-tokens", "96"};
}

v1::GenerateRequest Greedy(int prompt, int max_tokens, std::uint32_t salt) {
  v1::GenerateRequest request = TinyRequest(prompt, max_tokens, salt);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

TEST(EmulatedCudaServer, AnswersWithTheSameTokensColdCachedAndInABatchAndSaysWhatItRunsOn) {
  Server server(Tiny64File(), FlagsFor("emulated-cuda"));
  v1::Model model;
  ::grpc::ClientContext context;
  ASSERT_TRUE(server.stub->GetModel(&context, {}, &model).ok());
  EXPECT_THAT(model.DebugString(), HasSubstr("cuda-mma16-1/bf16"));

  std::vector<Reply> cold;
  for (std::uint32_t i = 0; i < 4; ++i) {
    cold.push_back(server.Generate(TinyRequest(18 + 9 * static_cast<int>(i), 8, i)));
    ASSERT_TRUE(cold.back().status.ok()) << cold.back().status.error_message();
    EXPECT_EQ(cold.back().tokens.size(), 8u);
    EXPECT_EQ(cold.back().finish.receipt().cached_tokens(), 0u);
  }
  std::vector<std::jthread> clients;
  std::vector<Reply> again(cold.size());
  for (std::uint32_t i = 0; i < cold.size(); ++i) {
    clients.emplace_back([&, i] {
      ::grpc::ClientContext own;
      again[i] =
          ReadAll(*server.stub->Generate(&own, TinyRequest(18 + 9 * static_cast<int>(i), 8, i)));
    });
  }
  clients.clear();
  for (std::size_t i = 0; i < cold.size(); ++i) {
    EXPECT_EQ(again[i].tokens, cold[i].tokens);
    EXPECT_GT(again[i].finish.receipt().cached_tokens(), 0u);
  }
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 0);
}

// A pool in which four replies of 30 tokens cannot stand side by side.
TEST(EmulatedCudaServer, APreemptedReplyHasTheTokensOfAnUndisturbedOne) {
  constexpr std::uint32_t kNumReplies = 4;
  std::vector<std::string> flags = {"--device", "emulated-cuda", "--max-model-len", "96"};
  flags.insert(flags.end(), {"--max-num-batched-tokens", "96", "--kv-cache-memory"});
  std::vector<std::string> roomy_flags = flags, tight_flags = flags;
  roomy_flags.emplace_back("16MiB");
  tight_flags.emplace_back("144KiB");
  Server roomy(Tiny64File(), roomy_flags);
  Server tight(Tiny64File(), tight_flags);
  std::vector<std::jthread> clients;
  std::vector<Reply> replies(kNumReplies);
  for (std::uint32_t i = 0; i < kNumReplies; ++i) {
    clients.emplace_back([&, i] { replies[i] = tight.Generate(TinyRequest(20, 30, i)); });
  }
  clients.clear();
  int num_preemptions = 0;
  for (std::uint32_t i = 0; i < kNumReplies; ++i) {
    ASSERT_TRUE(replies[i].status.ok()) << replies[i].status.error_message();
    EXPECT_EQ(replies[i].tokens, roomy.Generate(TinyRequest(20, 30, i)).tokens) << i;
    num_preemptions += replies[i].finish.receipt().preemptions();
  }
  EXPECT_GT(num_preemptions, 0);
}

// The prompt whose two highest logits never come close (docs/correctness.md).
TEST(EmulatedCudaServer, TheShippedModelAnswersWithTheCpusTokens) {
  const std::string model = PAGODA_SOURCE_DIR "/models/tiny";
  v1::GenerateRequest request;
  request.set_text("There was a girl named Mira who lived by the sea.");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stop()->set_max_tokens(24);
  Server cuda(model, FlagsFor("emulated-cuda"));
  Server cpu(model, FlagsFor("cpu"));
  const Reply found = cuda.Generate(request);
  ASSERT_TRUE(found.status.ok()) << found.status.error_message();
  EXPECT_EQ(found.tokens.size(), 24u);
  EXPECT_EQ(found.text, cpu.Generate(request).text);
}

TEST(EmulatedCudaServer, AnswersMostlyWithTheCpusGreedyTokens) {
  Server cuda(Tiny64File(), FlagsFor("emulated-cuda"));
  Server cpu(Tiny64File(), FlagsFor("cpu"));
  int num_equal = 0;
  for (std::uint32_t i = 0; i < 6; ++i) {
    const v1::GenerateRequest request = Greedy(10 + 5 * static_cast<int>(i), 4, i);
    const Reply found = cuda.Generate(request);
    ASSERT_TRUE(found.status.ok()) << found.status.error_message();
    num_equal += found.tokens == cpu.Generate(request).tokens ? 1 : 0;
  }
  // Random weights now and then give two tokens the same chance to within the rounding of bf16.
  EXPECT_GE(num_equal, 5);
}

// A start that ends with `message` and the code of its kind: nothing has been bound, no port and
// no journal written.
void ExpectNothingStarts(const fixtures::TinyOptions& tiny, const std::vector<std::string>& flags,
                         const std::string& message, int code = 1) {
  SCOPED_TRACE(message);
  const std::string model = FreshFile("-refused.gguf"), journals = FreshFile("-journals");
  ASSERT_TRUE(fixtures::WriteTinyGguf(model, tiny).ok());
  std::filesystem::create_directory(journals);
  std::vector<std::string> all = {"--model",        model,         "--journal-dir", journals,
                                  "--admin-listen", "127.0.0.1:0", "--device"};
  all.insert(all.end(), flags.begin(), flags.end());
  ServerProcess process(all);
  EXPECT_EQ(process.Wait(), code);
  EXPECT_THAT(process.log(), HasSubstr(message));
  EXPECT_THAT(process.log(), Not(HasSubstr("listening on")));
  EXPECT_THAT(process.log(), Not(HasSubstr("admin service")));
  EXPECT_EQ(process.address(), "127.0.0.1:");
  EXPECT_TRUE(std::filesystem::is_empty(journals));
  std::filesystem::remove(model);
  std::filesystem::remove(journals);
}

fixtures::TinyOptions Tiny64() { return {.head_size = 64}; }

TEST(EmulatedCudaServer, AGpuThatThisBuildCannotDriveIsAnErrorThatSaysSoAndStartsNothing) {
  ExpectNothingStarts(Tiny64(), {"cuda"}, "this build has no CUDA driver behind it");
}

TEST(EmulatedCudaServer, AHeadSizeItHasNoKernelForIsRefusedByNameBeforeItListens) {
  for (const std::uint32_t size : {16u, 48u, 80u, 160u}) {
    ExpectNothingStarts({.head_size = size}, {"emulated-cuda"},
                        "the cuda backend has no head size " + std::to_string(size) +
                            "; it has 32, 64, 96, 128, 256");
  }
}

TEST(EmulatedCudaServer, ABlockSizeItHasNotIsRefusedByNameBeforeItListens) {
  for (const std::string size : {"5", "12", "48"}) {
    ExpectNothingStarts(Tiny64(), {"emulated-cuda", "--block-size", size},
                        "--block-size is " + size + "; choose 4, 8, 16, 32 or 64", 2);
  }
  for (const std::string size : {"2", "128"}) {
    ExpectNothingStarts(Tiny64(), {"emulated-cuda", "--block-size", size}, "--block-size", 2);
  }
}

TEST(EmulatedCudaServer, AKvTypeOrActivationsItHasNotAreRefusedByNameBeforeItListens) {
  ExpectNothingStarts(Tiny64(), {"emulated-cuda", "--kv-cache-dtype", "f32"},
                      "the cuda backend has no KV type f32; it has bf16");
  ExpectNothingStarts(Tiny64(), {"emulated-cuda", "--kv-cache-dtype", "fp8"}, "bf16", 2);
  for (const std::string type : {"int8", "f32"}) {
    ExpectNothingStarts(Tiny64(), {"emulated-cuda", "--activation-dtype", type},
                        "activation-dtype is '" + type + "'; this backend has auto or bf16");
  }
}

TEST(EmulatedCudaServer, AFormatOfWeightsItHasNotIsRefusedByNameBeforeItListens) {
  fixtures::TinyOptions tiny = Tiny64();
  tiny.without_tensor = "blk.0.ffn_down.weight";
  tiny.more = [](fixtures::GgufWriter& writer) {
    constexpr std::uint64_t kShape[] = {96, 64};
    constexpr auto kInt8 = static_cast<formats::GgufType>(24);
    writer.Tensor("blk.0.ffn_down.weight", kShape, kInt8, std::vector<std::byte>(96 * 64));
  };
  ExpectNothingStarts(tiny, {"emulated-cuda"},
                      "tensor 'blk.0.ffn_down.weight' is of type I8, which is not built");
}

}  // namespace
}  // namespace pagoda::process
