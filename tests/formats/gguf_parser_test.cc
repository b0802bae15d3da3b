#include "formats/gguf_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fixtures/gguf_writer.h"

namespace pagoda::formats {
namespace {

TEST(GgufParser, KeepsFileOrderAndLeavesTwinsForTheIndexToFind) {
  fixtures::GgufWriter writer;
  writer.Unsigned("z", 1);
  writer.Unsigned("a", 2);
  writer.Unsigned("z", 3);
  const std::vector<std::byte> bytes = writer.Bytes();
  const std::string name = "twins.gguf";
  const auto contents = ParseGguf(bytes, name);
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->metadata.size(), 3u);
  EXPECT_EQ(contents->metadata[0].first, "z");
  EXPECT_EQ(contents->metadata[1].first, "a");
  EXPECT_EQ(std::get<std::uint64_t>(contents->metadata[2].second), 3u);
}

}  // namespace
}  // namespace pagoda::formats
