#include "formats/file_mapping.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/fixtures/gguf_writer.h"

namespace pagoda::formats {
namespace {

TEST(FileMapping, HoldsTheBytesOfTheFileAcrossMoves) {
  const std::string path = fixtures::TemporaryPath("mapped");
  fixtures::ByteSink sink;
  sink.Text("pagoda");
  ASSERT_TRUE(fixtures::WriteFile(path, sink.bytes()).ok());
  auto opened = FileMapping::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  FileMapping mapping = *std::move(opened);
  FileMapping second;
  second = std::move(mapping);
  ASSERT_EQ(second.bytes().size(), 6u);
  EXPECT_EQ(second.bytes()[5], std::byte{'a'});
}

TEST(FileMapping, SaysWhatIsWrongWithAPathThatCannotBeMapped) {
  const auto missing = FileMapping::Open("/nowhere/model.gguf");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/nowhere/model.gguf"), absl::string_view::npos);

  const auto folder = FileMapping::Open(testing::TempDir());
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(folder.status().message().find("not a regular file"), absl::string_view::npos);

  const std::string path = fixtures::TemporaryPath("empty");
  ASSERT_TRUE(fixtures::WriteFile(path, {}).ok());
  const auto empty = FileMapping::Open(path);
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagoda::formats
