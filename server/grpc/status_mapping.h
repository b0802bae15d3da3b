#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace pagoda::server {

// The one place where a Status of ours becomes a status of gRPC. The code is the same; the details
// say the rest, as google.rpc messages in the trailer grpc-status-details-bin:
//   always       ErrorInfo {reason, domain "pagoda", request_id where there is one}
//   a bad field  BadRequest {field path as in the proto, description}
//   try later    RetryInfo, and the trailer grpc-retry-pushback-ms for clients with a retry policy
//   queue full   QuotaFailure {subject, description}
//   not found    ResourceInfo
//   our fault    RequestInfo {request id}
// Texts are cut so that the trailers stay far below the 8 KiB that peers accept.
::grpc::Status ToGrpcStatus(const absl::Status& status, std::string_view request_id = {});

// The trailers that go with it. Before the call is finished.
void AddTrailers(const absl::Status& status, ::grpc::CallbackServerContext& context);

// The path of a field, as validation names it, in the request messages: "temperature" ->
// "sampling.temperature".
std::string_view FieldPath(std::string_view field);

}  // namespace pagoda::server
