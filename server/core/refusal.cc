#include "server/core/refusal.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/strings.h"

namespace pagoda::server {
namespace {

constexpr std::string_view kRetryPayload = "pagoda.v1/retry_after_ms";
constexpr std::string_view kTenantPayload = "pagoda.v1/tenant";

using base::ToAbsl;
using base::WithReason;
using scheduler::FinishReason;

}  // namespace

absl::Status WithRetryAfter(absl::Status status, std::int64_t milliseconds) {
  const std::string text = absl::StrCat(milliseconds);
  status.SetPayload(ToAbsl(kRetryPayload), absl::Cord(ToAbsl(text)));
  return status;
}

std::optional<std::int64_t> RetryAfterMsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(ToAbsl(kRetryPayload));
  std::int64_t milliseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) {
    return std::nullopt;
  }
  return milliseconds;
}

absl::Status Unavailable(std::string_view reason, std::string_view text) {
  return WithRetryAfter(WithReason(absl::UnavailableError(ToAbsl(text)), reason), kRetryAfterMs);
}

absl::Status QueueFull(std::string_view tenant, std::string_view what) {
  absl::Status status = WithRetryAfter(
      WithReason(absl::ResourceExhaustedError(absl::StrCat("tenant ", ToAbsl(tenant), " has ",
                                                           ToAbsl(what), "; try again later")),
                 reason::kQueueFull),
      kRetryAfterMs);
  status.SetPayload(ToAbsl(kTenantPayload), absl::Cord(ToAbsl(tenant)));
  return status;
}

absl::Status DeadlineTooSoon(std::string_view tenant, const TimeInQueue& time) {
  constexpr double kNanosPerMilli = 1e6;
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat(
          "tenant ", ToAbsl(tenant), " has ", time.tokens,
          " prompt tokens queued, this request's included; they take ", time.steps, " steps of ",
          static_cast<double>(time.step_nanos) / kNanosPerMilli, " ms, and the deadline leaves ",
          static_cast<double>(time.left_nanos) / kNanosPerMilli,
          " ms; give it more time or send it later")),
      reason::kDeadlineTooSoon);
}

std::string TenantOf(const absl::Status& status) {
  const auto payload = status.GetPayload(ToAbsl(kTenantPayload));
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::Status ModelNotFound(std::string_view asked, std::string_view served) {
  return WithReason(
      absl::NotFoundError(absl::StrCat("model \"", ToAbsl(asked),
                                       "\" is not served here; leave the field empty or use \"",
                                       ToAbsl(served), "\"")),
      reason::kModelNotFound);
}

absl::Status StatusOf(FinishReason finish, bool was_admitted) {
  switch (finish) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      return absl::OkStatus();
    case FinishReason::kCancelled:
      return WithReason(absl::CancelledError("the caller cancelled the request"),
                        reason::kCancelled);
    case FinishReason::kDeadline:
      return was_admitted
                 ? WithReason(absl::DeadlineExceededError(
                                  "the call's deadline passed while the reply was generated"),
                              reason::kDeadlineWhileGenerating)
                 : WithReason(absl::DeadlineExceededError(
                                  "the call's deadline passed while the request was queued"),
                              reason::kDeadlineWhileQueued);
    case FinishReason::kSlowConsumer:
      return WithReason(absl::ResourceExhaustedError(
                            "the reply was not read: its buffer stayed full for longer than "
                            "--slow-reader-grace; read faster or ask for less"),
                        reason::kSlowConsumer);
    case FinishReason::kNonFinite:
      return WithReason(absl::InternalError(
                            "the model's logits were not finite; this request ends, others go on"),
                        reason::kNonFinite);
    case FinishReason::kNothingAllowed:
      return WithReason(
          absl::FailedPreconditionError("allowed_token_ids, bad_words and min_tokens have left no "
                                        "token that could come next; loosen them"),
          reason::kNothingAllowed);
    case FinishReason::kFailed:
      return WithReason(absl::InternalError("the step of this request failed twice"),
                        reason::kStepFailed);
    case FinishReason::kShutdown:
      return Unavailable(
          reason::kShutdown,
          "the server is stopping and its drain time is over; send it again elsewhere");
  }
  PAGODA_CHECK_MSG(false, "unknown finish reason");
  return absl::InternalError("unreachable");
}

}  // namespace pagoda::server
