#include "server/core/refusal.h"

#include <gtest/gtest.h>

#include "base/field_error.h"

namespace pagoda::server {
namespace {

using absl::StatusCode;
using scheduler::FinishReason;

TEST(Refusal, EveryFinishHasItsCodeAndReason) {
  const auto check = [](FinishReason finish, bool admitted, StatusCode code,
                        std::string_view reason) {
    const absl::Status status = StatusOf(finish, admitted);
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(base::ReasonOf(status), reason);
  };
  check(FinishReason::kStop, true, StatusCode::kOk, "");
  check(FinishReason::kLength, true, StatusCode::kOk, "");
  check(FinishReason::kCancelled, true, StatusCode::kCancelled, reason::kCancelled);
  check(FinishReason::kDeadline, false, StatusCode::kDeadlineExceeded,
        reason::kDeadlineWhileQueued);
  check(FinishReason::kDeadline, true, StatusCode::kDeadlineExceeded,
        reason::kDeadlineWhileGenerating);
  check(FinishReason::kSlowConsumer, true, StatusCode::kResourceExhausted, reason::kSlowConsumer);
  check(FinishReason::kNonFinite, true, StatusCode::kInternal, reason::kNonFinite);
  check(FinishReason::kNothingAllowed, true, StatusCode::kFailedPrecondition,
        reason::kNothingAllowed);
  check(FinishReason::kFailed, true, StatusCode::kInternal, reason::kStepFailed);
  check(FinishReason::kShutdown, true, StatusCode::kUnavailable, reason::kShutdown);
}

TEST(Refusal, OnlyWhatHelpsToRetryCarriesAHint) {
  EXPECT_EQ(RetryAfterMsOf(WithRetryAfter(absl::UnavailableError("x"), 250)), 250);
  EXPECT_EQ(RetryAfterMsOf(Unavailable(reason::kLoading, "x")), kRetryAfterMs);
  EXPECT_EQ(RetryAfterMsOf(StatusOf(FinishReason::kSlowConsumer, true)), std::nullopt);
}

TEST(Refusal, AnUnknownModelIsNamedBesideTheServedOne) {
  const absl::Status status = ModelNotFound("gpt", "smol");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("gpt"), absl::string_view::npos);
  EXPECT_NE(status.message().find("smol"), absl::string_view::npos);
}

}  // namespace
}  // namespace pagoda::server
