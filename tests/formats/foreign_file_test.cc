#include "formats/foreign_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "formats/gguf.h"
#include "formats/json_document.h"
#include "formats/safetensors.h"

namespace pagoda::formats {
namespace {

using testing::HasSubstr;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

constexpr std::string_view kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 98\n";
constexpr std::string_view kPage = "\n <!DOCTYPE html><html>Sign in</html>";

TEST(ForeignFile, IsToldByItsFirstBytes) {
  EXPECT_THAT(AdviceOnForeign(Bytes(kPointer)), HasSubstr("fetch the file itself"));
  EXPECT_THAT(AdviceOnForeign(Bytes(kPage)), HasSubstr("it is a web page"));
  EXPECT_THAT(AdviceOnForeign(Bytes("\xef\xbb\xbf<HTML>")), HasSubstr("it is a web page"));
  EXPECT_THAT(AdviceOnForeign(Bytes("PK\x03\x04")), HasSubstr("compressed archive"));
  EXPECT_EQ(AdviceOnForeign(Bytes("GGUF")), "");
  EXPECT_EQ(AdviceOnForeign({}), "");
}

TEST(ForeignFile, IsNamedWhereAModelsFileWasExpected) {
  for (const std::string_view text : {kPointer, kPage}) {
    for (const absl::Status& status : {GgufFile::Parse(Bytes(text), "f").status(),
                                       SafetensorsFile::Parse(Bytes(text), "f").status(),
                                       JsonDocument::Parse(text, "f").status()}) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("fetch the file itself")) << text;
    }
  }
}

TEST(ForeignFile, AFileOfAnotherFormatIsToldWhatIsWanted) {
  EXPECT_THAT(std::string(GgufFile::Parse(Bytes("nonsense"), "f").status().message()),
              HasSubstr("give a GGUF file, or the folder of a model in safetensors"));
}

}  // namespace
}  // namespace pagoda::formats
