#include "model/kv_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_size.h"

namespace pagoda::model {
namespace {

using testing::HasSubstr;

KvMemoryQuestion Question() {
  return {.asked_bytes = std::nullopt,
          .available_bytes = 100'000,
          .bytes_per_block = 100,
          .blocks_per_full_request = 10,
          .max_num_seqs = 1000};
}

TEST(ChooseKvMemory, AutoTakesItsShare) { EXPECT_EQ(ChooseKvMemory(Question())->num_blocks, 500); }

TEST(ChooseKvMemory, AutoTakesNoMoreThanAllSequencesCanUse) {
  KvMemoryQuestion question = Question();
  question.max_num_seqs = 3;
  EXPECT_EQ(ChooseKvMemory(question)->num_blocks, 31);
}

TEST(ChooseKvMemory, AGivenSizeIsTakenExactly) {
  KvMemoryQuestion question = Question();
  question.asked_bytes = 1999;
  EXPECT_EQ(ChooseKvMemory(question)->num_blocks, 19);
}

TEST(ChooseKvMemory, I1TooLittleNamesEveryNumber) {
  KvMemoryQuestion question = Question();
  question.asked_bytes = 1000;
  const absl::Status status = ChooseKvMemory(question).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("would have 10 blocks"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("request needs 10 and the null block"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1.1 KiB"));
}

// 1,086 blocks of 2,900 bytes are 3.0035 MiB.
TEST(ChooseKvMemory, TheSizeItAdvisesIsEnough) {
  KvMemoryQuestion question = Question();
  question.available_bytes = std::int64_t{1} << 30;
  question.bytes_per_block = 2900;
  question.blocks_per_full_request = 1085;
  question.asked_bytes = 1000;
  const std::string message(ChooseKvMemory(question).status().message());
  const std::string before = "--kv-cache-memory to at least ";
  const std::size_t found = message.find(before);
  ASSERT_NE(found, std::string::npos) << message;
  const auto advised = base::ParseByteSize(message.substr(found + before.size()));
  ASSERT_TRUE(advised.ok()) << advised.status();
  question.asked_bytes = *advised;
  EXPECT_TRUE(ChooseKvMemory(question).ok()) << *advised;
}

TEST(ChooseKvMemory, MoreThanThereIsIsRefused) {
  KvMemoryQuestion question = Question();
  question.asked_bytes = 200'000;
  EXPECT_THAT(std::string(ChooseKvMemory(question).status().message()), HasSubstr("are available"));
}

}  // namespace
}  // namespace pagoda::model
