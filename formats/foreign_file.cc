#include "formats/foreign_file.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/strings.h"

namespace pagoda::formats {
namespace {

std::string_view Beginning(std::span<const std::byte> bytes) {
  constexpr std::size_t kLooked = 256;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, kLooked);
}

bool IsWebPage(std::string_view beginning) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (beginning.starts_with(kByteOrderMark)) beginning.remove_prefix(kByteOrderMark.size());
  const auto text = absl::StripLeadingAsciiWhitespace(base::ToAbsl(beginning));
  return absl::StartsWithIgnoreCase(text, "<!doctype html") ||
         absl::StartsWithIgnoreCase(text, "<html");
}

}  // namespace

std::string AdviceOnForeign(std::span<const std::byte> bytes) {
  const std::string_view beginning = Beginning(bytes);
  if (beginning.starts_with("version https://git-lfs.github.com/spec/")) {
    return "; it is a Git LFS pointer that stands for the file; fetch the file itself, as with git "
           "lfs pull";
  }
  if (IsWebPage(beginning)) {
    return "; it is a web page; fetch the file itself, by its download link";
  }
  if (beginning.starts_with("PK\x03\x04") || beginning.starts_with("\x1f\x8b")) {
    return "; it is a compressed archive; give what is in it";
  }
  return {};
}

}  // namespace pagoda::formats
