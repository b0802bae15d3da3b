#include "server/grpc/status_mapping.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/field_error.h"
#include "base/strings.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/core/refusal.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;

// Validation speaks of parameters, the proto groups them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kFieldPaths = {{
    {"temperature", "sampling.temperature"},
    {"top_p", "sampling.top_p"},
    {"top_k", "sampling.top_k"},
    {"min_p", "sampling.min_p"},
    {"n", "sampling.n"},
    {"seed", "sampling.seed"},
    {"presence_penalty", "sampling.presence_penalty"},
    {"frequency_penalty", "sampling.frequency_penalty"},
    {"repetition_penalty", "sampling.repetition_penalty"},
    {"logit_bias", "sampling.logit_bias"},
    {"allowed_token_ids", "sampling.allowed_token_ids"},
    {"bad_words", "sampling.bad_words"},
    {"max_tokens", "stop.max_tokens"},
    {"min_tokens", "stop.min_tokens"},
    {"stop", "stop.stop"},
    {"stop_token_ids", "stop.stop_token_ids"},
    {"ignore_eos", "stop.ignore_eos"},
    {"logprobs", "output.logprobs"},
    {"prompt_logprobs", "output.prompt_logprobs"},
    {"logprob_token_ids", "output.logprob_token_ids"},
    {"echo", "output.echo"},
    {"cache_salt", "options.cache_salt"},
    {"priority", "options.priority"},
    {"client_request_id", "options.client_request_id"},
}};

// Cut at a character, not inside one.
std::string Cut(absl::string_view text) {
  if (text.size() <= kMaxTextBytes) return std::string(text);
  std::size_t end = kMaxTextBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

std::string ReasonFor(const absl::Status& status) {
  std::string reason = base::ReasonOf(status);
  if (!reason.empty()) return reason;
  if (!base::FieldOf(status).empty()) return std::string(reason::kInvalidField);
  return absl::StatusCodeToString(status.code());
}

// What is wrong with `field`, without its name in front.
absl::string_view Description(const absl::Status& status, const std::string& field) {
  absl::string_view text = status.message();
  if (!field.empty()) absl::ConsumePrefix(&text, absl::StrCat(field, ": "));
  return text;
}

// A field goes by its path in the proto.
std::string Message(const absl::Status& status) {
  const std::string field = base::FieldOf(status);
  if (field.empty()) return Cut(status.message());
  return Cut(absl::StrCat(base::ToAbsl(FieldPath(field)), ": ", Description(status, field)));
}

void AddFieldDetail(const absl::Status& status, google::rpc::Status& rpc) {
  const std::string field = base::FieldOf(status);
  if (field.empty()) return;
  google::rpc::BadRequest detail;
  auto* violation = detail.add_field_violations();
  violation->set_field(std::string(FieldPath(field)));
  violation->set_description(Cut(Description(status, field)));
  rpc.add_details()->PackFrom(detail);
}

void AddRetryDetails(const absl::Status& status, google::rpc::Status& rpc) {
  if (const auto after = RetryAfterMsOf(status)) {
    google::rpc::RetryInfo detail;
    detail.mutable_retry_delay()->set_seconds(*after / 1000);
    detail.mutable_retry_delay()->set_nanos(static_cast<std::int32_t>(*after % 1000) * 1'000'000);
    rpc.add_details()->PackFrom(detail);
  }
  if (base::ReasonOf(status) != reason::kQueueFull) return;
  google::rpc::QuotaFailure detail;
  auto* violation = detail.add_violations();
  violation->set_subject("tenant:" + TenantOf(status));
  violation->set_description(Cut(status.message()));
  rpc.add_details()->PackFrom(detail);
}

void AddSubjectDetails(const absl::Status& status, std::string_view request_id,
                       google::rpc::Status& rpc) {
  if (base::ReasonOf(status) == reason::kModelNotFound) {
    google::rpc::ResourceInfo detail;
    detail.set_resource_type("model");
    detail.set_description(Cut(status.message()));
    rpc.add_details()->PackFrom(detail);
  }
  if (absl::IsInternal(status) && !request_id.empty()) {
    google::rpc::RequestInfo detail;
    detail.set_request_id(std::string(request_id));
    rpc.add_details()->PackFrom(detail);
  }
}

}  // namespace

std::string_view FieldPath(std::string_view field) {
  for (const auto& [name, path] : kFieldPaths) {
    if (field == name) return path;
  }
  return field;
}

::grpc::Status ToGrpcStatus(const absl::Status& status, std::string_view request_id) {
  if (status.ok()) return ::grpc::Status::OK;
  google::rpc::Status rpc;
  rpc.set_code(static_cast<int>(status.code()));
  rpc.set_message(Message(status));
  google::rpc::ErrorInfo info;
  info.set_reason(ReasonFor(status));
  info.set_domain("pagoda");
  if (!request_id.empty()) (*info.mutable_metadata())["request_id"] = std::string(request_id);
  rpc.add_details()->PackFrom(info);
  AddFieldDetail(status, rpc);
  AddRetryDetails(status, rpc);
  AddSubjectDetails(status, request_id, rpc);
  // The numbers of absl's codes are gRPC's.
  return ::grpc::Status(static_cast<::grpc::StatusCode>(status.code()), rpc.message(),
                        rpc.SerializeAsString());
}

void AddTrailers(const absl::Status& status, ::grpc::CallbackServerContext& context) {
  if (const auto after = RetryAfterMsOf(status)) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(*after));
  }
}

}  // namespace pagoda::server
