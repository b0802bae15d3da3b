#include "client/errors.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/one_line.h"
#include "base/strings.h"
#include "google/rpc/status.pb.h"

namespace pagoda::client {
namespace {

using nlohmann::json;

std::string_view CodeName(int code) {
  static constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                              "CANCELLED",
                                                              "UNKNOWN",
                                                              "INVALID_ARGUMENT",
                                                              "DEADLINE_EXCEEDED",
                                                              "NOT_FOUND",
                                                              "ALREADY_EXISTS",
                                                              "PERMISSION_DENIED",
                                                              "RESOURCE_EXHAUSTED",
                                                              "FAILED_PRECONDITION",
                                                              "ABORTED",
                                                              "OUT_OF_RANGE",
                                                              "UNIMPLEMENTED",
                                                              "INTERNAL",
                                                              "UNAVAILABLE",
                                                              "DATA_LOSS",
                                                              "UNAUTHENTICATED"};
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

// --- Details: each kind adds itself to the error and gives its JSON ---

json Take(const google::rpc::BadRequest& detail, CallError& error) {
  json fields = json::array();
  for (const auto& violation : detail.field_violations()) {
    error.fields.push_back(violation);
    fields.push_back({{"field", violation.field()}, {"description", violation.description()}});
  }
  return {{"type", "BadRequest"}, {"field_violations", fields}};
}

json Take(const google::rpc::ErrorInfo& detail, CallError& error) {
  error.reason = detail.reason();
  json metadata = json::object();
  for (const auto& [key, value] : detail.metadata()) metadata[key] = value;
  return {{"type", "ErrorInfo"},
          {"reason", detail.reason()},
          {"domain", detail.domain()},
          {"metadata", metadata}};
}

json Take(const google::rpc::RetryInfo& detail, CallError& error) {
  error.retry_seconds =
      static_cast<double>(detail.retry_delay().seconds()) + 1e-9 * detail.retry_delay().nanos();
  return {{"type", "RetryInfo"}, {"retry_delay_seconds", error.retry_seconds}};
}

json Take(const google::rpc::QuotaFailure& detail, CallError& error) {
  json quotas = json::array();
  for (const auto& violation : detail.violations()) {
    error.quotas.push_back(violation);
    quotas.push_back({{"subject", violation.subject()}, {"description", violation.description()}});
  }
  return {{"type", "QuotaFailure"}, {"violations", quotas}};
}

json Take(const google::rpc::RequestInfo& detail, CallError&) {
  return {{"type", "RequestInfo"}, {"request_id", detail.request_id()}};
}

json Take(const google::rpc::ResourceInfo& detail, CallError&) {
  return {{"type", "ResourceInfo"},
          {"resource_type", detail.resource_type()},
          {"resource_name", detail.resource_name()},
          {"description", detail.description()}};
}

template <typename Detail>
bool TryTake(const google::protobuf::Any& any, CallError& error) {
  Detail detail;
  if (!any.Is<Detail>() || !any.UnpackTo(&detail)) return false;
  error.details.push_back(Take(detail, error));
  return true;
}

void TakeDetails(const std::string& bytes, CallError& error) {
  google::rpc::Status status;
  if (bytes.empty() || !status.ParseFromString(bytes)) return;
  for (const google::protobuf::Any& any : status.details()) {
    const bool known = TryTake<google::rpc::BadRequest>(any, error) ||
                       TryTake<google::rpc::ErrorInfo>(any, error) ||
                       TryTake<google::rpc::RetryInfo>(any, error) ||
                       TryTake<google::rpc::QuotaFailure>(any, error) ||
                       TryTake<google::rpc::RequestInfo>(any, error) ||
                       TryTake<google::rpc::ResourceInfo>(any, error);
    if (!known) error.details.push_back({{"type", any.type_url()}});
  }
}

std::string WhatToDo(const CallError& error) {
  if (!error.to_do.empty()) return error.to_do;
  if (error.unreachable) {
    return "start pagoda-server there (scripts/quickstart does), or name another with --server";
  }
  if (error.retry_seconds >= 0) {
    return absl::StrCat("try again in ", std::ceil(error.retry_seconds), " s");
  }
  if (!error.fields.empty()) return "change what is named above";
  if (error.code == "INVALID_ARGUMENT") return "change the request as the message says";
  if (error.code == "UNIMPLEMENTED") return "leave out what the message names";
  if (error.code == "DEADLINE_EXCEEDED") return "give more time with --deadline, or ask for less";
  if (error.code == "RESOURCE_EXHAUSTED") return "ask for less, or try again later";
  if (error.code == "UNAVAILABLE")
    return "try again when the server is serving: pagoda health --wait 60";
  if (error.code == "CANCELLED") return "nothing; ask again";
  if (error.code == "UNAUTHENTICATED") {
    return "say who calls: --token-file FILE, or --tls-cert and --tls-key";
  }
  if (error.code == "NOT_FOUND") return "check the name; pagoda model shows what is loaded";
  return "look into the server's log";
}

}  // namespace

CallError DecodeError(const grpc::Status& status) {
  CallError error;
  error.code = CodeName(status.error_code());
  error.message = status.error_message();
  TakeDetails(status.error_details(), error);
  // A server that answers gives details; a connection that fails does not.
  error.unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE && error.details.empty();
  return error;
}

CallError LocalError(const absl::Status& status) {
  CallError error;
  error.code = CodeName(static_cast<int>(status.code()));
  error.message = std::string(status.message());
  // Nobody was asked: what is wrong lies in a file or on the command line.
  if (absl::IsNotFound(status)) error.to_do = "check the path";
  if (absl::IsInvalidArgument(status)) error.to_do = "change what the message names";
  if (absl::IsUnimplemented(status)) {
    error.to_do = "use a model that is built here; docs/models.md lists them";
  }
  return error;
}

CallError FileError(const absl::Status& status, std::string_view path) {
  CallError error = LocalError(status);
  // Otherwise a flag is at fault.
  const bool is_of_file = std::string_view(error.message).starts_with(path);
  if (!absl::IsInvalidArgument(status) || !is_of_file) return error;
  const bool advises = error.message.find("; fetch ") != std::string::npos ||
                       error.message.find("fetch it ") != std::string::npos ||
                       error.message.find("; give ") != std::string::npos;
  error.to_do = advises ? "do as the message says"
                        : "mend or replace the file; docs/models.md says what is read";
  return error;
}

json ErrorAsJson(const CallError& error) {
  return {
      {"error", {{"code", error.code}, {"message", error.message}, {"details", error.details}}}};
}

std::string ErrorAsText(const CallError& error, std::string_view asked) {
  std::string text = absl::StrCat("Asked: ", base::ToAbsl(asked), "\nFound: ", error.code);
  if (!error.reason.empty()) absl::StrAppend(&text, " (", error.reason, ")");
  absl::StrAppend(&text, ": ", base::OneLine(error.message), "\n");
  for (const auto& violation : error.fields) {
    const std::string line = absl::StrCat(violation.field(), ": ", violation.description());
    if (line != error.message) absl::StrAppend(&text, "       ", base::OneLine(line), "\n");
  }
  for (const auto& violation : error.quotas) {
    absl::StrAppend(&text, "       ", violation.subject(), ": ", violation.description(), "\n");
  }
  absl::StrAppend(&text, "To do: ", WhatToDo(error), "\n");
  return text;
}

int ReportError(const Options& options, const CallError& error, std::string_view what,
                Console& console) {
  ReportFileError(options, error, absl::StrCat(base::ToAbsl(what), " from ", options.server),
                  console);
  return error.unreachable ? kExitUnreachable : kExitFailed;
}

int ReportFileError(const Options& options, const CallError& error, std::string_view asked,
                    Console& console) {
  if (options.json) {
    console.out << ErrorAsJson(error).dump(-1, ' ', false, json::error_handler_t::replace)
                << std::endl;
  } else {
    console.err << ErrorAsText(error, asked) << std::flush;
  }
  return kExitFailed;
}

}  // namespace pagoda::client
