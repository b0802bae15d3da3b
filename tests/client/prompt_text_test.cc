#include "client/prompt_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace pagoda::client {
namespace {

TEST(PromptText, ABadByteIsNamedWithItsPlaceAndItsOffset) {
  EXPECT_TRUE(CheckText("x", "caf\xC3\xA9").ok());
  const absl::Status status = CheckText("--prompt", "caf\xE9!");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(status.message().find("--prompt is not UTF-8: byte 3 is 0xe9") == 0) << status;
  EXPECT_FALSE(CheckText("x", "cut \xC3").ok());
}

TEST(PromptText, AFileAndStdinAreReadWholeOrRefused) {
  std::istringstream good("two\nlines\n"), bad("\xff");
  EXPECT_EQ(*ReadTextFile("-", good), "two\nlines\n");
  EXPECT_TRUE(ReadTextFile("-", bad).status().message().find("stdin") != std::string::npos);
  const std::string path = testing::TempDir() + "/prompt_text_test.txt";
  std::ofstream(path, std::ios::binary) << "a\nb\xffz";
  const absl::Status status = ReadTextFile(path, good).status();
  EXPECT_TRUE(status.message().find(path + " is not UTF-8: byte 3") == 0) << status;
}

}  // namespace
}  // namespace pagoda::client
