#include "server/grpc/status_mapping.h"

#include <gtest/gtest.h>

#include "base/field_error.h"
#include "server/core/refusal.h"
#include "tests/server/grpc/door_world.h"

namespace pagoda::server {
namespace {

TEST(StatusMapping, OkStaysOkWithoutDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::OkStatus()).error_details(), "");
}

TEST(StatusMapping, EveryErrorHasOneErrorInfoOfOurDomain) {
  const auto status = ToGrpcStatus(absl::InternalError("x"), "id-1");
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.domain(), "pagoda");
  EXPECT_EQ(info.reason(), "INTERNAL");
  EXPECT_EQ(info.metadata().at("request_id"), "id-1");
  EXPECT_EQ(DetailOf<google::rpc::RequestInfo>(status).request_id(), "id-1");
}

TEST(StatusMapping, ABadFieldIsNamedByItsPathInTheProto) {
  const auto status = ToGrpcStatus(base::FieldError("temperature", "-1 asked"));
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(status), "sampling.temperature");
  EXPECT_EQ(DetailOf<google::rpc::BadRequest>(status).field_violations(0).description(),
            "-1 asked");
  EXPECT_EQ(status.error_message(), "sampling.temperature: -1 asked");
  EXPECT_EQ(ReasonIn(status), "INVALID_FIELD");
  EXPECT_EQ(FieldPath("max_tokens"), "stop.max_tokens");
  EXPECT_EQ(FieldPath("messages"), "messages");
}

TEST(StatusMapping, WhatHelpsToRetrySaysWhen) {
  const auto status = ToGrpcStatus(Unavailable(reason::kDraining, "draining"));
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailOf<google::rpc::RetryInfo>(status).retry_delay().seconds(), 1);
  const auto full = ToGrpcStatus(WithRetryAfter(QueueFull("alpha", "all it may have"), 1500));
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(full).violations(0).subject(), "tenant:alpha");
  EXPECT_EQ(DetailOf<google::rpc::RetryInfo>(full).retry_delay().nanos(), 500'000'000);
}

TEST(StatusMapping, AnUnknownModelIsAResource) {
  const auto status = ToGrpcStatus(ModelNotFound("x", "y"));
  EXPECT_EQ(DetailOf<google::rpc::ResourceInfo>(status).resource_type(), "model");
}

TEST(StatusMapping, LongTextsAreCutAtACharacterSoThatTrailersPass) {
  std::string text(1023, 'a');
  for (int i = 0; i < 3000; ++i) text += "\u20AC";
  const auto status = ToGrpcStatus(base::FieldError("text", text));
  EXPECT_LT(status.error_details().size(), 4096u);
  EXPECT_LT(status.error_message().size(), 1100u);
  google::rpc::Status rpc;
  EXPECT_TRUE(rpc.ParseFromString(status.error_details()));  // its texts are UTF-8
}

}  // namespace
}  // namespace pagoda::server
