#include "base/field_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace pagoda::base {
namespace {

constexpr std::string_view kFieldPayload = "pagoda.v1/field";
constexpr std::string_view kReasonPayload = "pagoda.v1/reason";

std::string Payload(const absl::Status& status, std::string_view url) {
  const auto payload = status.GetPayload(ToAbsl(url));
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status FieldError(std::string_view field, std::string_view description) {
  absl::Status status =
      absl::InvalidArgumentError(absl::StrCat(ToAbsl(field), ": ", ToAbsl(description)));
  status.SetPayload(ToAbsl(kFieldPayload), absl::Cord(ToAbsl(field)));
  return status;
}

std::string FieldOf(const absl::Status& status) { return Payload(status, kFieldPayload); }

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(ToAbsl(kReasonPayload), absl::Cord(ToAbsl(reason)));
  return status;
}

std::string ReasonOf(const absl::Status& status) { return Payload(status, kReasonPayload); }

}  // namespace pagoda::base
