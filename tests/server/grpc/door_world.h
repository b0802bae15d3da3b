#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "server/grpc/grpc_server.h"
#include "tests/server/world.h"

namespace pagoda::server {

// The real door on loopback over a scripted engine, and a channel to it. With `engine_runs` the
// engine counts for every request (StepAll) on a thread of its own; without, a test says what it
// does.
struct DoorWorld {
  static World::Options Threaded(World::Options options) {
    options.num_text_threads = 2;
    return options;
  }

  explicit DoorWorld(World::Options options = {}, bool engine_runs = true)
      : world(Threaded(std::move(options))) {
    GrpcServerOptions door;
    door.listen = "127.0.0.1:0";
    auto started = GrpcServer::Start(door, world.desk, base::SystemClock());
    PAGODA_CHECK_MSG(started.ok(), started.status().ToString());
    server = *std::move(started);
    channel = ::grpc::CreateChannel("127.0.0.1:" + std::to_string(server->port()),
                                    ::grpc::InsecureChannelCredentials());
    stub = v1::InferenceService::NewStub(channel);
    if (!engine_runs) return;
    engine = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (!world.engine.StepAll(8)) std::this_thread::yield();
      }
    });
  }
  ~DoorWorld() { server->Shutdown(60'000); }

  World world;
  std::unique_ptr<GrpcServer> server;
  std::shared_ptr<::grpc::Channel> channel;
  std::unique_ptr<v1::InferenceService::Stub> stub;
  std::jthread engine;
};

// A whole stream: everything the messages said, joined.
struct WholeReply {
  ::grpc::Status status;
  std::string text;
  std::vector<std::uint32_t> tokens;
  std::map<std::uint32_t, std::string> text_of;  // by choice
  v1::Finish finish;
  int num_finishes = 0;
};

inline WholeReply ReadAll(::grpc::ClientReader<v1::GenerateResponse>& reader) {
  WholeReply whole;
  v1::GenerateResponse response;
  while (reader.Read(&response)) {
    for (const v1::ChoiceDelta& delta : response.deltas()) {
      whole.text += delta.text();
      whole.text_of[delta.index()] += delta.text();
      whole.tokens.insert(whole.tokens.end(), delta.token_ids().begin(), delta.token_ids().end());
    }
    if (response.has_finish()) {
      whole.finish = response.finish();
      ++whole.num_finishes;
    }
  }
  whole.status = reader.Finish();
  return whole;
}

inline WholeReply Generate(v1::InferenceService::Stub& stub, const v1::GenerateRequest& request) {
  ::grpc::ClientContext context;
  return ReadAll(*stub.Generate(&context, request));
}

inline v1::GenerateRequest TextRequest(std::string text, std::int32_t max_tokens) {
  v1::GenerateRequest request;
  request.set_text(std::move(text));
  request.mutable_stop()->set_max_tokens(max_tokens);
  return request;
}

// One detail of a rich error; a default one when the error has none of this kind.
template <typename Detail>
Detail DetailOf(const ::grpc::Status& status) {
  google::rpc::Status rpc;
  Detail detail;
  if (!rpc.ParseFromString(status.error_details())) return detail;
  for (const auto& any : rpc.details()) {
    if (any.Is<Detail>()) any.UnpackTo(&detail);
  }
  return detail;
}

inline std::string ReasonIn(const ::grpc::Status& status) {
  return DetailOf<google::rpc::ErrorInfo>(status).reason();
}

inline std::string FieldIn(const ::grpc::Status& status) {
  const auto detail = DetailOf<google::rpc::BadRequest>(status);
  return detail.field_violations_size() == 1 ? detail.field_violations(0).field() : "";
}

}  // namespace pagoda::server
