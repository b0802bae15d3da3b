// libFuzzer entry: any bytes at all are either refused as a template or render within the named
// bounds, twice the same, and the caller's bytes never lose their mark.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/chat_template.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::text::ChatTemplate;
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return 0;
  // The content is made of one letter that a template has to spell out to write.
  const std::vector<pagoda::text::ChatMessage> messages = {
      {"\xc3\x9f", "\xc3\x9f\xc3\x9f \xc3\x9f"}};
  const auto once = (*parsed)->Render(messages, {.bos_token = "<s>", .eos_token = "</s>"});
  const auto again = (*parsed)->Render(messages, {.bos_token = "<s>", .eos_token = "</s>"});
  PAGODA_CHECK(once.ok() == again.ok());
  if (!once.ok()) return 0;
  PAGODA_CHECK(once->Joined() == again->Joined());
  PAGODA_CHECK(!pagoda::text::FirstBadUtf8(once->Joined()).has_value());
  const bool source_has_it =
      source.find("\xc3\x9f") != std::string::npos || source.find('\\') != std::string::npos;
  for (std::size_t i = 0; i < once->parts.size(); ++i) {
    const auto& part = once->parts[i];
    PAGODA_CHECK(!part.text.empty());
    PAGODA_CHECK(i == 0 || part.from_input != once->parts[i - 1].from_input);
    PAGODA_CHECK(part.from_input || source_has_it ||
                 part.text.find("\xc3\x9f") == std::string::npos);
  }
  return 0;
}
