#include "base/field_error.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(FieldError, CarriesTheFieldAndTheWords) {
  const absl::Status status = FieldError("top_p", "is 1.5; allowed is (0, 1]");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "top_p");
  EXPECT_EQ(status.message(), "top_p: is 1.5; allowed is (0, 1]");
}

TEST(FieldError, OtherStatusesHaveNeitherFieldNorReason) {
  EXPECT_EQ(FieldOf(absl::NotFoundError("model")), "");
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
}

TEST(FieldError, ReasonTravelsBesideTheCode) {
  const absl::Status status = WithReason(absl::ResourceExhaustedError("queue"), "QUEUE_FULL");
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pagoda::base
