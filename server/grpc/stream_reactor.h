#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string_view>

#include "base/runtime/gate.h"
#include "pagoda/v1/inference.pb.h"
#include "server/core/pipeline.h"
#include "server/core/response_stream.h"

namespace pagoda::server {

// One streaming call: turns a ResponseStream's parts into messages, one write in flight. Ends
// through the stream alone, also after a cancel, so there is one Finish; deletes itself when gRPC
// is done with it. Threads: gRPC's reactions and the listener's calls from text workers. They take
// turns: a worker calls only after a Take that gave nothing, and then no write is in flight.
class StreamReactor final : public ::grpc::ServerWriteReactor<::grpc::ByteBuffer>,
                            public ReplyListener {
 public:
  // Inside `open` until gRPC is done with it.
  StreamReactor(::grpc::CallbackServerContext& context, base::Gate& open);

  // Takes the request in, or finishes the call with why not. One of the two, once, before gRPC gets
  // the reactor.
  void Start(Pipeline& pipeline, const Principal& caller, CallInput input);
  void Refuse(const absl::Status& status);

  void OnReplyReady() override { Pump(); }
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // Writes what is there, or leaves it to the listener.
  void Pump();
  void FinishCall();

  ::grpc::CallbackServerContext& context_;
  base::Gate& open_;
  ResponseStreamRef stream_;
  std::string_view numerics_id_;
  ReplyPart part_;
  v1::GenerateResponse response_;
  ::grpc::ByteBuffer message_;
};

}  // namespace pagoda::server
