#include "client/prompt_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client/connection.h"
#include "text/utf8.h"

namespace pagoda::client {

absl::Status CheckText(std::string_view where, std::string_view text) {
  const std::optional<std::size_t> bad = text::FirstBadUtf8(text);
  if (!bad.has_value()) return absl::OkStatus();
  const auto byte = static_cast<unsigned char>(text[*bad]);
  return absl::InvalidArgumentError(absl::StrCat(base::ToAbsl(where), " is not UTF-8: byte ", *bad,
                                                 " is ", absl::StrFormat("0x%02x", byte),
                                                 "; convert it, as with iconv -t UTF-8"));
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, std::istream& standard_input) {
  PAGODA_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, standard_input));
  PAGODA_RETURN_IF_ERROR(CheckText(path == "-" ? "the text of stdin" : path, text));
  return text;
}

}  // namespace pagoda::client
