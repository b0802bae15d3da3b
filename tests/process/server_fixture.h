#pragma once

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "pagoda/v1/admin.grpc.pb.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "tests/fixtures/chain_model.h"
#include "tests/fixtures/tiny_model.h"
#include "tests/process/server_process.h"

// What the tests of whole processes share: model files, requests, a server with its clients.
namespace pagoda::process {

struct Reply {
  ::grpc::Status status;
  std::string text;
  std::vector<std::uint32_t> tokens;
  v1::Finish finish;
};

inline Reply ReadAll(::grpc::ClientReader<v1::GenerateResponse>& reader) {
  Reply reply;
  v1::GenerateResponse part;
  while (reader.Read(&part)) {
    for (const auto& delta : part.deltas()) {
      reply.text += delta.text();
      reply.tokens.insert(reply.tokens.end(), delta.token_ids().begin(), delta.token_ids().end());
    }
    if (part.has_finish()) reply.finish = part.finish();
  }
  reply.status = reader.Finish();
  return reply;
}

inline std::string FreshFile(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + name)).string();
}

// The reason in an error's details; empty when it has none.
inline std::string ReasonOf(const ::grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details())) return "";
  for (const auto& detail : details.details()) {
    if (detail.Is<google::rpc::ErrorInfo>()) detail.UnpackTo(&info);
  }
  return info.reason();
}

// A server that has said that it serves, and clients of it.
class Server {
 public:
  explicit Server(const std::string& model, std::vector<std::string> flags = {})
      : process(With(model, std::move(flags))) {
    EXPECT_TRUE(process.WaitForLog("serving ")) << process.log();
    stub = v1::InferenceService::NewStub(NewChannel());
    admin = v1::AdminService::NewStub(
        ::grpc::CreateChannel(AdminAddress(), ::grpc::InsecureChannelCredentials()));
  }

  // A connection of its own.
  std::shared_ptr<::grpc::Channel> NewChannel(::grpc::ChannelArguments arguments = {}) const {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    return ::grpc::CreateCustomChannel(process.address(), ::grpc::InsecureChannelCredentials(),
                                       arguments);
  }

  Reply Generate(const v1::GenerateRequest& request) {
    ::grpc::ClientContext context;
    return ReadAll(*stub->Generate(&context, request));
  }

  v1::Stats Stats() {
    ::grpc::ClientContext context;
    v1::Stats stats;
    const ::grpc::Status status = admin->GetStats(&context, {}, &stats);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return stats;
  }

  // Asks until `is_so`; false when the admin service has gone.
  bool AwaitStats(const std::function<bool(const v1::Stats&)>& is_so) {
    for (v1::Stats stats = Stats(); !is_so(stats); stats = Stats()) {
      if (!stats.has_blocks()) return false;
    }
    return true;
  }

  ServerProcess process;
  std::unique_ptr<v1::InferenceService::Stub> stub;
  std::unique_ptr<v1::AdminService::Stub> admin;

 private:
  static std::vector<std::string> With(const std::string& model, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--model", model, "--admin-listen", "127.0.0.1:0"});
    return flags;
  }

  std::string AdminAddress() const {
    const std::string log = process.log();
    const std::string mark = "admin service on port ";
    const std::size_t begin = log.find(mark);
    EXPECT_NE(begin, std::string::npos) << log;
    std::size_t end = begin + mark.size();
    std::string port;
    while (end < log.size() && log[end] >= '0' && log[end] <= '9') port += log[end++];
    return "127.0.0.1:" + port;
  }
};

inline std::string TinyFile() {
  const std::string path = FreshFile("-tiny.gguf");
  const absl::Status written = fixtures::WriteTinyGguf(path);
  EXPECT_TRUE(written.ok()) << written.ToString();
  return path;
}

inline std::string ChainFile(std::vector<std::string> pieces,
                             fixtures::ChainScript::End end = fixtures::ChainScript::End::kEos,
                             const fixtures::ChainOptions& options = {}) {
  const std::string path = FreshFile("-chain.gguf");
  fixtures::ChainScript script;
  script.pieces = std::move(pieces);
  script.end = end;
  const auto written = fixtures::WriteChainGguf(path, std::vector{script}, options);
  EXPECT_TRUE(written.ok()) << written.status().ToString();
  return path;
}

inline const std::vector<std::string> kTinyFlags = {"--block-size", "4", "--max-num-batched-tokens",
                                                    "80"};

inline v1::GenerateRequest TinyRequest(int prompt, int max_tokens, std::uint32_t salt = 0) {
  v1::GenerateRequest request;
  for (int i = 0; i < prompt; ++i) {
    request.mutable_token_ids()->add_ids((salt * 31u + static_cast<std::uint32_t>(i) * 7u) % 200u +
                                         10u);
  }
  request.mutable_sampling()->set_temperature(0.8f);
  request.mutable_sampling()->set_seed(salt + 42);
  request.mutable_stop()->set_max_tokens(max_tokens);
  request.mutable_stop()->set_ignore_eos(true);
  return request;
}

inline v1::GenerateRequest ChainRequest(int max_tokens) {
  v1::GenerateRequest request;
  request.set_text(">");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stop()->set_max_tokens(max_tokens);
  return request;
}

}  // namespace pagoda::process
