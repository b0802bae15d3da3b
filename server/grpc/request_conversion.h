#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/instant.h"
#include "base/status_macros.h"
#include "pagoda/v1/inference.pb.h"
#include "server/core/call_input.h"
#include "server/core/refusal.h"

namespace pagoda::server {

// Requests of the wire as plain values. What this server has not built is refused here by name
// (UNIMPLEMENTED), never ignored. Nothing is checked beyond that: the pipeline does.
absl::StatusOr<CallInput> ToCallInput(v1::GenerateRequest& request);
absl::StatusOr<CallInput> ToCallInput(v1::ChatRequest& request);
absl::StatusOr<PromptInput> ToPromptInput(v1::TokenizeRequest& request);

// A call's deadline on the monotonic clock. gRPC gives it on the wall clock; far in the future
// means none.
base::Instant ToInstant(std::chrono::system_clock::time_point deadline,
                        std::chrono::system_clock::time_point wall_now, base::Instant now);

// UNIMPLEMENTED with the number of a field that this server does not know, in whatever part of the
// message it is: what a newer client asks for is not passed over.
absl::Status CheckFieldsKnown(const google::protobuf::Message& message);

// The bytes of a call as a message, every field of it known. Messages are parsed here and not by
// gRPC, which answers a malformed one (text that is not UTF-8, say) with UNIMPLEMENTED.
template <typename Message>
absl::StatusOr<Message> ParseMessage(const ::grpc::ByteBuffer& bytes) {
  ::grpc::ByteBuffer copy = bytes;  // shares the slices
  ::grpc::ProtoBufferReader reader(&copy);
  Message message;
  if (message.ParseFromZeroCopyStream(&reader)) {
    PAGODA_RETURN_IF_ERROR(CheckFieldsKnown(message));
    return message;
  }
  const std::string text =
      absl::StrCat("not a valid ", Message::descriptor()->full_name(),
                   ": the message is cut or malformed, or a text in it is not UTF-8");
  return base::WithReason(absl::InvalidArgumentError(text), reason::kMalformedRequest);
}

}  // namespace pagoda::server
