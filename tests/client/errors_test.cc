#include "client/errors.h"

#include <gtest/gtest.h>

#include <string>

#include "google/rpc/status.pb.h"

namespace pagoda::client {
namespace {

template <typename... Details>
grpc::Status WithDetails(grpc::StatusCode code, const std::string& message,
                         const Details&... details) {
  google::rpc::Status status;
  (status.add_details()->PackFrom(details), ...);
  return {code, message, status.SerializeAsString()};
}

TEST(Errors, EveryKnownDetailIsShownAndInJson) {
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("sampling.top_p");
  bad.mutable_field_violations(0)->set_description("2 is not in (0, 1]");
  google::rpc::ErrorInfo info;
  info.set_reason("BAD_RANGE");
  info.set_domain("pagoda");
  (*info.mutable_metadata())["found"] = "2";
  google::rpc::RequestInfo request;
  request.set_request_id("r-7");
  const CallError error = DecodeError(
      WithDetails(grpc::StatusCode::INVALID_ARGUMENT, "top_p is out of range", bad, info, request));
  EXPECT_EQ(ErrorAsText(error, "generate from h:1"),
            "Asked: generate from h:1\n"
            "Found: INVALID_ARGUMENT (BAD_RANGE): top_p is out of range\n"
            "       sampling.top_p: 2 is not in (0, 1]\n"
            "To do: change what is named above\n");
  const nlohmann::json json = ErrorAsJson(error)["error"];
  EXPECT_EQ(json["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(json["message"], "top_p is out of range");
  ASSERT_EQ(json["details"].size(), 3u);
  EXPECT_EQ(json["details"][0]["field_violations"][0]["field"], "sampling.top_p");
  EXPECT_EQ(json["details"][1]["metadata"]["found"], "2");
  EXPECT_EQ(json["details"][2]["request_id"], "r-7");
  EXPECT_FALSE(error.unreachable);
}

TEST(Errors, AFieldThatTheMessageHasNamedIsNotNamedAgain) {
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("sampling.top_p");
  bad.mutable_field_violations(0)->set_description("2 asked");
  const CallError error =
      DecodeError(WithDetails(grpc::StatusCode::INVALID_ARGUMENT, "sampling.top_p: 2 asked", bad));
  EXPECT_EQ(ErrorAsText(error, "x"),
            "Asked: x\n"
            "Found: INVALID_ARGUMENT: sampling.top_p: 2 asked\n"
            "To do: change what is named above\n");
}

TEST(Errors, ARetryDelayIsWhatToDo) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  google::rpc::QuotaFailure quota;
  quota.add_violations()->set_subject("tenant:default");
  quota.mutable_violations(0)->set_description("1024 requests are queued");
  const CallError error = DecodeError(
      WithDetails(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full", retry, quota));
  const std::string text = ErrorAsText(error, "x");
  EXPECT_NE(text.find("tenant:default: 1024 requests are queued\n"), std::string::npos) << text;
  EXPECT_NE(text.find("To do: try again in 2 s\n"), std::string::npos) << text;
  EXPECT_EQ(error.details[0]["retry_delay_seconds"], 1.5);
}

TEST(Errors, UnavailableIsUnreachableOnlyWithoutAnAnswer) {
  EXPECT_TRUE(DecodeError({grpc::StatusCode::UNAVAILABLE, "failed to connect"}).unreachable);
  google::rpc::ErrorInfo info;
  info.set_reason("DRAINING");
  EXPECT_FALSE(
      DecodeError(WithDetails(grpc::StatusCode::UNAVAILABLE, "draining", info)).unreachable);
}

TEST(Errors, ACallerThatIsNotKnownIsToldHowToSayWhoItIs) {
  const CallError error = DecodeError({grpc::StatusCode::UNAUTHENTICATED, "no credentials"});
  EXPECT_NE(ErrorAsText(error, "x").find("To do: say who calls: --token-file FILE"),
            std::string::npos);
}

TEST(Errors, BrokenOrUnknownDetailsHideNothingElse) {
  const CallError broken = DecodeError({grpc::StatusCode::INTERNAL, "oops", "\xff\xff"});
  EXPECT_EQ(broken.code, "INTERNAL");
  EXPECT_TRUE(broken.details.empty());
  google::rpc::Status unknown;
  unknown.add_details()->set_type_url("type.googleapis.com/x.Y");
  const CallError error =
      DecodeError({grpc::StatusCode::INTERNAL, "oops", unknown.SerializeAsString()});
  EXPECT_EQ(error.details[0]["type"], "type.googleapis.com/x.Y");
}

TEST(Errors, AMessageStaysInItsLine) {
  const CallError error =
      LocalError(absl::InvalidArgumentError("architecture 'x\nTo do: nothing' is not built"));
  EXPECT_NE(ErrorAsText(error, "plan f").find("'x\\x0aTo do: nothing'"), std::string::npos);
}

TEST(Errors, AFileAtFaultIsToBeReplacedAndAFlagToBeChanged) {
  const auto to_do = [](const char* message) {
    return FileError(absl::InvalidArgumentError(message), "m.gguf").to_do;
  };
  EXPECT_EQ(to_do("m.gguf: is empty; fetch the file again"), "do as the message says");
  EXPECT_EQ(to_do("m.gguf: tensor 'a' is missing"),
            "mend or replace the file; docs/models.md says what is read");
  EXPECT_EQ(to_do("max-model-len is 257; the model was made for 1 to 256"),
            "change what the message names");
  EXPECT_EQ(FileError(absl::NotFoundError("m.gguf: cannot be opened"), "m.gguf").to_do,
            "check the path");
}

}  // namespace
}  // namespace pagoda::client
