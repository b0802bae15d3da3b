#pragma once

#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/console.h"
#include "client/options.h"
#include "google/rpc/error_details.pb.h"

namespace pagoda::client {

// A failed call with its google.rpc details taken apart.
struct CallError {
  std::string code;  // UPPER_SNAKE, as gRPC names it
  std::string message;
  bool unreachable = false;  // no server answered
  std::vector<google::rpc::BadRequest::FieldViolation> fields;
  std::vector<google::rpc::QuotaFailure::Violation> quotas;
  std::string reason;
  double retry_seconds = -1;  // negative: not said
  nlohmann::json details = nlohmann::json::array();
  std::string to_do;  // where the finder knows better than the code says
};

// Requires: !status.ok(). Broken details are left out, never an error of their own.
CallError DecodeError(const grpc::Status& status);
// A mistake found before anything was sent.
CallError LocalError(const absl::Status& status);
// The same about a model's file or folder, or about what was asked of it.
CallError FileError(const absl::Status& status, std::string_view path);

nlohmann::json ErrorAsJson(const CallError& error);
// What was asked, what was found, what to do: three labelled lines or more.
std::string ErrorAsText(const CallError& error, std::string_view asked);

// Prints the error the way the options ask for it. Returns: the exit code.
int ReportError(const Options& options, const CallError& error, std::string_view what,
                Console& console);
// The same for a question that no server was asked.
int ReportFileError(const Options& options, const CallError& error, std::string_view asked,
                    Console& console);

}  // namespace pagoda::client
