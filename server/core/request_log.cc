#include "server/core/request_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/field_error.h"

namespace pagoda::server {
namespace {

std::string Printable(std::string label) {
  label.resize(std::min(label.size(), kMaxClientRequestIdBytes));
  for (char& c : label) {
    const bool plain = c > ' ' && c < 0x7f && c != '"' && c != '=';
    if (!plain) c = '_';
  }
  return label;
}

std::string Outcome(const ReplyEnd& end) {
  if (end.status.ok()) return end.reason == scheduler::FinishReason::kStop ? "stop" : "length";
  std::string reason = base::ReasonOf(end.status);
  if (reason.empty()) reason = "INVALID_ARGUMENT";
  return reason;
}

}  // namespace

std::string RequestLogLine(const ResponseStream::Identity& identity, const ReplyEnd& end) {
  std::string line = absl::StrCat("request=", identity.wire_id, " tenant=", identity.tenant.value(),
                                  " status=", absl::StatusCodeToString(end.status.code()),
                                  " outcome=", Outcome(end));
  if (!identity.client_request_id.empty()) {
    absl::StrAppend(&line, " client_id=", Printable(identity.client_request_id));
  }
  if (end.has_receipt) {
    absl::StrAppend(
        &line, " prompt=", end.receipt.prompt_tokens, " cached=", end.receipt.cached_tokens,
        " generated=", end.receipt.generated_tokens, " preemptions=", end.receipt.preemptions);
  }
  absl::StrAppend(&line, absl::StrFormat(" queue_ms=%.1f first_token_ms=%.1f total_ms=%.1f",
                                         end.queue_ms, end.first_token_ms, end.total_ms));
  return line;
}

}  // namespace pagoda::server
