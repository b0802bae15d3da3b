#include "server/config/prefixes_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/config/check_config.h"

namespace pagoda::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Refusal(const std::string& text) {
  const auto prefixes = ParsePrefixes(text, "prefixes.conf");
  EXPECT_FALSE(prefixes.ok()) << text;
  return std::string(prefixes.status().message());
}

TEST(PrefixesFile, EveryKeyIsRead) {
  const auto prefixes = ParsePrefixes(
      "[rules]\nsystem-file = \"rules.txt\"\ntenant = alpha\ntenant = beta\n"
      "[manual]\ntext-file = manual.txt # all of it\n",
      "prefixes.conf");
  ASSERT_TRUE(prefixes.ok()) << prefixes.status();
  ASSERT_EQ(prefixes->size(), 2u);
  EXPECT_EQ(prefixes->front().name, "rules");
  EXPECT_TRUE(prefixes->front().is_system_message);
  EXPECT_EQ(prefixes->front().path, "rules.txt");
  EXPECT_THAT(prefixes->front().tenants, ElementsAre("alpha", "beta"));
  EXPECT_FALSE(prefixes->back().is_system_message);
  EXPECT_THAT(prefixes->back().tenants, IsEmpty());
}

TEST(PrefixesFile, ARefusalNamesFileLineAndKey) {
  EXPECT_THAT(Refusal("[a]\ntext-file = x\nsystem-file = y\n"),
              AllOf(HasSubstr("prefixes.conf line 3"), HasSubstr("prefix a, system-file"),
                    HasSubstr("text-file stands above")));
  EXPECT_THAT(Refusal("[a]\ntext = x\n"),
              AllOf(HasSubstr("prefix a, text: unknown"), HasSubstr("text-file, system-file")));
  EXPECT_THAT(Refusal("[a]\ntext-file = \"\"\n"), HasSubstr("names no file"));
  EXPECT_THAT(Refusal("[a]\ntext-file = x\n[a]\n"), HasSubstr("stands twice"));
  EXPECT_THAT(Refusal("[a]\n"), HasSubstr("neither text-file nor system-file"));
  EXPECT_THAT(Refusal("[a]\ntext-file = x\ntenant = \"a b\"\n"), HasSubstr("no tenant's name"));
  EXPECT_THAT(Refusal("# none\n"), HasSubstr("no prefix"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "[p" + std::to_string(i) + "]\ntext-file = x\n";
  EXPECT_THAT(Refusal(many), HasSubstr("more than 64"));
}

class LoadPrefixesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "prefixes";
    std::filesystem::create_directories(folder_);
    config_.model = PAGODA_SOURCE_DIR "/CMakeLists.txt";
    config_.public_prefixes = (folder_ / "prefixes.conf").string();
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::filesystem::path folder_;
  ServerConfig config_;
};

TEST_F(LoadPrefixesTest, FilesAreFoundBesideTheListAndTakenByteForByte) {
  Write("rules.txt", " be brief\n");
  Write("prefixes.conf", "[rules]\nsystem-file = rules.txt\n");
  ASSERT_TRUE(CheckConfig(config_).ok()) << CheckConfig(config_);
  ASSERT_EQ(config_.prefix_settings.size(), 1u);
  EXPECT_EQ(config_.prefix_settings.front().text, " be brief\n");
}

TEST_F(LoadPrefixesTest, WhatIsNotThereIsRefusedByItsKey) {
  Write("prefixes.conf", "[rules]\nsystem-file = absent.txt\n");
  EXPECT_THAT(CheckConfig(config_).message(),
              AllOf(HasSubstr("--public-prefixes"), HasSubstr("prefix rules, system-file"),
                    HasSubstr("absent.txt"), HasSubstr("cannot be read")));
  Write("rules.txt", "be brief");
  Write("prefixes.conf", "[rules]\nsystem-file = rules.txt\ntenant = alpha\n");
  EXPECT_THAT(CheckConfig(config_).message(),
              AllOf(HasSubstr("prefix rules, tenant"), HasSubstr("alpha"), HasSubstr("--tenants")));
  config_.public_prefixes += ".absent";
  EXPECT_THAT(CheckConfig(config_).message(), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace pagoda::server
