#include "formats/safetensors_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fixtures/gguf_writer.h"
#include "tests/fixtures/safetensors_writer.h"

namespace pagoda::formats {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kFirst[] = "model-00001-of-00002.safetensors";
constexpr char kSecond[] = "model-00002-of-00002.safetensors";

// Two shards with the tensors "a" and "b" (16 bytes each) and "c" (32 bytes), and their index.
class SafetensorsFolderG1 : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fixtures::TemporaryPath("shards");
    std::filesystem::create_directory(directory_);
    shards_[kFirst] = {"a", "b"};
    shards_[kSecond] = {"c"};
    places_ = {{"a", kFirst}, {"b", kFirst}, {"c", kSecond}};
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::vector<std::byte> ShardBytes(const std::vector<std::string>& tensors) const {
    fixtures::SafetensorsWriter writer;
    for (const std::string& tensor : tensors) {
      const std::uint64_t shape[] = {tensor == "c" ? 8u : 4u};
      writer.Tensor(tensor, "F32", shape, std::vector<std::byte>(shape[0] * 4));
    }
    return writer.Bytes();
  }

  void WriteText(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(fixtures::WriteFile(Path(name), std::as_bytes(std::span(text))).ok());
  }

  absl::StatusOr<std::unique_ptr<SafetensorsFolder>> Open() const {
    for (const auto& [name, tensors] : shards_) {
      EXPECT_TRUE(fixtures::WriteFile(Path(name), ShardBytes(tensors)).ok());
    }
    std::string map;
    for (const auto& [tensor, shard] : places_) {
      absl::StrAppend(&map, map.empty() ? "" : ", ", "\"", tensor, "\": \"", shard, "\"");
    }
    WriteText("model.safetensors.index.json",
              absl::StrCat("{\"metadata\": {\"total_size\": ", total_, "}, \"weight_map\": {", map,
                           "}}"));
    return SafetensorsFolder::Open(directory_);
  }
  std::string Refusal() const {
    const auto folder = Open();
    EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(folder.status().message());
  }

  std::string directory_;
  std::map<std::string, std::vector<std::string>> shards_;
  std::map<std::string, std::string> places_;
  std::string total_ = "64";
};

TEST_F(SafetensorsFolderG1, ASoundPairOfShardsGivesEveryTensorOnce) {
  const auto folder = Open();
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_EQ((*folder)->tensors().size(), 3u);
  EXPECT_EQ((*folder)->tensors()[2]->name, "c");
  EXPECT_EQ((*folder)->files().size(), 2u);
}

TEST_F(SafetensorsFolderG1, AMissingShardIsNamed) {
  shards_.erase(kSecond);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kSecond), HasSubstr("is missing"),
                               HasSubstr("2 shards; fetch it too")));
}

TEST_F(SafetensorsFolderG1, AShardThatWasCutOrGrewIsRefusedWithItsSizes) {
  ASSERT_TRUE(Open().ok());
  const auto size = std::filesystem::file_size(Path(kSecond));
  std::filesystem::resize_file(Path(kSecond), size - 10);
  std::string message(SafetensorsFolder::Open(directory_).status().message());
  EXPECT_THAT(message, AllOf(HasSubstr(kSecond), HasSubstr("tensor 'c' lies at bytes 0 to 32"),
                             HasSubstr("22 bytes of data")));
  std::filesystem::resize_file(Path(kSecond), size + 7);
  message = std::string(SafetensorsFolder::Open(directory_).status().message());
  EXPECT_THAT(message, AllOf(HasSubstr(kSecond), HasSubstr("has 39 bytes of data")));
}

TEST_F(SafetensorsFolderG1, ATensorInTwoShardsIsRefusedWithBoth) {
  shards_[kSecond] = {"c", "a"};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kSecond), HasSubstr("holds tensor 'a', which"),
                               HasSubstr(std::string(kFirst) + " holds too")));
}

TEST_F(SafetensorsFolderG1, AStrayWeightFileIsNamedAndAnotherNamingIsLeftAlone) {
  const auto stray = ShardBytes({"d"});
  ASSERT_TRUE(fixtures::WriteFile(Path("consolidated.safetensors"), stray).ok());
  EXPECT_TRUE(Open().ok());
  ASSERT_TRUE(fixtures::WriteFile(Path("model-00003-of-00003.safetensors"), stray).ok());
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("model-00003-of-00003.safetensors"),
                               HasSubstr("index.json does not name")));
}

TEST_F(SafetensorsFolderG1, AnIndexThatNamesTheWrongShardIsRefused) {
  places_["b"] = kSecond;
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kFirst), HasSubstr("holds tensor 'b'"),
                               HasSubstr(std::string("places in ") + kSecond)));
}

TEST_F(SafetensorsFolderG1, AnIndexThatKnowsOtherTensorsThanTheShardsIsRefused) {
  places_["d"] = kSecond;
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kSecond), HasSubstr("lacks tensor 'd'")));
  places_.erase("d");
  places_.erase("b");
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr(kFirst), HasSubstr("holds tensor 'b'"), HasSubstr("does not name")));
}

TEST_F(SafetensorsFolderG1, AWrongTotalIsRefusedWithBothNumbersAndARoundFloatIsRead) {
  total_ = "60";
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("total_size 60"), HasSubstr("2 shards take 64 bytes")));
  total_ = "\"64\"";
  EXPECT_THAT(Refusal(), HasSubstr("total_size is not a whole number"));
  total_ = "64.0";
  EXPECT_TRUE(Open().ok());
}

TEST_F(SafetensorsFolderG1, AnIndexThatLeadsOutOfTheFolderIsRefused) {
  for (const char* const place : {"../other.safetensors", "/etc/passwd", "..", ""}) {
    places_["a"] = place;
    EXPECT_THAT(Refusal(), HasSubstr("places tensor 'a' in something that is no file name"));
  }
}

TEST_F(SafetensorsFolderG1, AnIndexWithoutAMapIsRefused) {
  for (const char* const text : {"{}", "[]", R"({"weight_map": {}})", R"({"weight_map": 3})"}) {
    WriteText("model.safetensors.index.json", text);
    const auto folder = SafetensorsFolder::Open(directory_);
    EXPECT_THAT(std::string(folder.status().message()), HasSubstr("no weight_map")) << text;
  }
}

TEST_F(SafetensorsFolderG1, WithoutAnIndexOneFileOfTheRightNameIsTheModel) {
  EXPECT_EQ(SafetensorsFolder::Open(directory_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(fixtures::WriteFile(Path("model.safetensors"), ShardBytes({"a"})).ok());
  const auto folder = SafetensorsFolder::Open(directory_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ((*folder)->tensors().size(), 1u);
  ASSERT_TRUE(fixtures::WriteFile(Path(kFirst), ShardBytes({"a"})).ok());
  EXPECT_THAT(std::string(SafetensorsFolder::Open(directory_).status().message()),
              AllOf(HasSubstr("has 2 weight files"), HasSubstr("no model.safetensors.index.json")));
}

TEST(SafetensorsFolder, AFolderThatIsNotThereIsNotFound) {
  EXPECT_EQ(SafetensorsFolder::Open("/nowhere/model").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pagoda::formats
