#include "server/config/section_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace pagoda::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(SectionFile, LinesKeepTheirNumbersAndLoseTheirQuotes) {
  const auto lines =
      SplitSections("# head\n\n[one] # first\r\n key = \"a # b\" # c\nbare = x y # z", "f");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 3u);
  EXPECT_EQ((*lines)[0].section, "one");
  EXPECT_EQ((*lines)[0].number, 3);
  EXPECT_EQ((*lines)[1].key, "key");
  EXPECT_EQ((*lines)[1].value, "a # b");
  EXPECT_EQ((*lines)[2].value, "x y");
  EXPECT_EQ((*lines)[2].number, 5);
}

TEST(SectionFile, WhatIsNeitherIsRefusedByItsLineAndNotRepeated) {
  for (const char* const text :
       {"s3cret\n", "[a]\ns3cret\n", "[s3cret/x]\n", "[a] s3cret\n", "[a]\nk = \"s3cret\n"}) {
    const auto lines = SplitSections(text, "some.conf");
    ASSERT_FALSE(lines.ok()) << text;
    EXPECT_THAT(lines.status().message(),
                AllOf(HasSubstr("some.conf line "), Not(HasSubstr("s3cret"))));
  }
}

TEST(SectionFile, AFileIsReadWholeOrRefused) {
  const std::string path = testing::TempDir() + "/sections.conf";
  std::ofstream(path) << "[a]\n";
  EXPECT_EQ(ReadNamedFile("--flag", path).value(), "[a]\n");
  std::ofstream(path) << std::string((1 << 20) + 1, 'x');
  EXPECT_THAT(ReadNamedFile("--flag", path).status().message(),
              AllOf(HasSubstr("--flag"), HasSubstr("1 MiB")));
  std::ofstream(path) << "";
  EXPECT_THAT(ReadNamedFile("--flag", path).status().message(), HasSubstr("empty"));
}

}  // namespace
}  // namespace pagoda::server
