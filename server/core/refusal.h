#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "scheduler/events.h"

// What the server says when it says no. Every refusal carries a machine-readable reason
// (base/field_error.h) and, where trying again helps, a hint when. Doors turn these into their own
// form; clients match on reasons, never on texts.
namespace pagoda::server {

namespace reason {
inline constexpr std::string_view kLoading = "MODEL_LOADING";
inline constexpr std::string_view kDraining = "DRAINING";
inline constexpr std::string_view kEngineFailed = "ENGINE_FAILED";
inline constexpr std::string_view kQueueFull = "QUEUE_FULL";
inline constexpr std::string_view kModelNotFound = "MODEL_NOT_FOUND";
inline constexpr std::string_view kNotBuilt = "FEATURE_NOT_BUILT";
inline constexpr std::string_view kNoChatTemplate = "NO_CHAT_TEMPLATE";
// Told from what a caller can mend.
inline constexpr std::string_view kTemplateFailed = "CHAT_TEMPLATE_FAILED";
inline constexpr std::string_view kInvalidField = "INVALID_FIELD";
inline constexpr std::string_view kMalformedRequest = "MALFORMED_REQUEST";
inline constexpr std::string_view kCancelled = "CANCELLED_BY_CALLER";
inline constexpr std::string_view kDeadlineTooSoon = "DEADLINE_TOO_SOON";
inline constexpr std::string_view kDeadlineWhileQueued = "DEADLINE_WHILE_QUEUED";
inline constexpr std::string_view kDeadlineWhileGenerating = "DEADLINE_WHILE_GENERATING";
inline constexpr std::string_view kSlowConsumer = "SLOW_CONSUMER";
inline constexpr std::string_view kNonFinite = "NON_FINITE_LOGITS";
inline constexpr std::string_view kNothingAllowed = "NO_TOKEN_ALLOWED";
inline constexpr std::string_view kStepFailed = "STEP_FAILED";
inline constexpr std::string_view kShutdown = "SHUTDOWN";
inline constexpr std::string_view kNoCredential = "NO_CREDENTIAL";
inline constexpr std::string_view kMalformedCredential = "MALFORMED_CREDENTIAL";
inline constexpr std::string_view kUnknownCredential = "UNKNOWN_CREDENTIAL";
}  // namespace reason

// How long a refused caller should wait before it tries again.
inline constexpr std::int64_t kRetryAfterMs = 1000;

// `status` with the hint; RetryAfterMsOf is empty when there is none.
absl::Status WithRetryAfter(absl::Status status, std::int64_t milliseconds);
std::optional<std::int64_t> RetryAfterMsOf(const absl::Status& status);

// UNAVAILABLE with a reason and the retry hint.
absl::Status Unavailable(std::string_view reason, std::string_view text);
// RESOURCE_EXHAUSTED with the retry hint, about this tenant: it has `what`.
absl::Status QueueFull(std::string_view tenant, std::string_view what);
// What a tenant's queue takes at the least, beside what a deadline leaves.
struct TimeInQueue {
  std::int64_t tokens = 0, steps = 0, step_nanos = 0, left_nanos = 0;
};
// DEADLINE_EXCEEDED before any work is done.
absl::Status DeadlineTooSoon(std::string_view tenant, const TimeInQueue& time);
// The tenant of a QueueFull; empty otherwise.
std::string TenantOf(const absl::Status& status);
absl::Status ModelNotFound(std::string_view asked, std::string_view served);

// How a finished request ends: OK for kStop and kLength, the status with its reason for every other
// one.
absl::Status StatusOf(scheduler::FinishReason finish, bool was_admitted);

}  // namespace pagoda::server
