#include "server/core/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/field_error.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::Not;

ResponseStream::Identity SomeIdentity() {
  ResponseStream::Identity identity;
  identity.wire_id = "00c0ffee-7";
  return identity;
}

TEST(RequestLog, OneLineWithIdsOutcomeCountsAndTimes) {
  ReplyEnd end;
  end.has_receipt = true;
  end.receipt.prompt_tokens = 12;
  end.receipt.generated_tokens = 3;
  end.total_ms = 1.25;
  const std::string line = RequestLogLine(SomeIdentity(), end);
  EXPECT_THAT(line, HasSubstr("request=00c0ffee-7 tenant=0 status=OK outcome=stop"));
  EXPECT_THAT(line, HasSubstr("prompt=12 cached=0 generated=3"));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

// Row J4: what a client wrote never reaches the log, not even through an error's text.
TEST(RequestLog, AnErrorsTextStaysOut) {
  ReplyEnd end;
  end.status = base::FieldError("messages", "cannot render MARKERWORD");
  const std::string line = RequestLogLine(SomeIdentity(), end);
  EXPECT_THAT(line, Not(HasSubstr("MARKERWORD")));
  EXPECT_THAT(line, HasSubstr("status=INVALID_ARGUMENT"));
}

TEST(RequestLog, ALabelCannotForgeALine) {
  ResponseStream::Identity identity = SomeIdentity();
  identity.client_request_id = "a\nrequest=1 status=OK";
  const std::string line = RequestLogLine(identity, ReplyEnd{});
  EXPECT_THAT(line, HasSubstr("client_id=a_request_1_status_OK"));
}

}  // namespace
}  // namespace pagoda::server
