#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <string_view>

#include "pagoda/v1/inference.pb.h"
#include "server/core/reply.h"
#include "server/core/served_model.h"

namespace pagoda::server {

// `response` is cleared first; its capacity is kept, so one object serves a whole stream. An end
// that is not OK adds its receipt alone, where there is one: the call's status says the rest.
void ToGenerateResponse(const ReplyPart& part, std::string_view request_id,
                        std::string_view numerics_id, v1::GenerateResponse& response);

v1::Model ToModel(const ServedModel& model);

::grpc::ByteBuffer SerializeMessage(const google::protobuf::MessageLite& message);

}  // namespace pagoda::server
