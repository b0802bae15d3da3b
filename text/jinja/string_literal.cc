#include "text/jinja/string_literal.h"

#include <charconv>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/lexer.h"
#include "text/jinja/template_error.h"

namespace pagoda::text::jinja {
namespace {

constexpr std::string_view kEscapes = "abfnrtv\\'\"";
constexpr std::string_view kEscaped = "\a\b\f\n\r\t\v\\'\"";

void AppendUtf8(std::string& text, std::uint32_t c) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xc0u | (c >> 6));
  } else if (c < 0x10000) {
    add(0xe0u | (c >> 12));
    add(0x80u | ((c >> 6) & 0x3fu));
  } else {
    add(0xf0u | (c >> 18));
    add(0x80u | ((c >> 12) & 0x3fu));
    add(0x80u | ((c >> 6) & 0x3fu));
  }
  add(0x80u | (c & 0x3fu));
}

std::size_t HexDigits(char escape) { return escape == 'x' ? 2 : escape == 'u' ? 4 : 8; }

// Takes the digits of a numeric escape off `rest`, which begins at them.
absl::StatusOr<std::uint32_t> TakeNumber(std::string_view& rest, std::size_t digits, int radix,
                                         std::uint32_t line) {
  std::uint32_t value = 0;
  const std::string_view text = rest.substr(0, digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  const auto taken = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || (radix == 16 && taken != digits)) {
    return ErrorAtLine(line, "a string holds a broken escape");
  }
  if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
    return ErrorAtLine(line, "a string's escape is not a Unicode character");
  }
  rest.remove_prefix(taken);
  return value;
}

// Takes one escape off `rest`, which begins after the backslash and is not empty.
absl::Status TakeEscape(std::string_view& rest, std::string& text, std::uint32_t line) {
  const char c = rest[0];
  if (const std::size_t known = kEscapes.find(c); known != std::string_view::npos) {
    text += kEscaped[known];
    rest.remove_prefix(1);
  } else if (c == '\n') {
    rest.remove_prefix(1);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    rest.remove_prefix(1);
    PAGODA_ASSIGN_OR_RETURN(const std::uint32_t value, TakeNumber(rest, HexDigits(c), 16, line));
    AppendUtf8(text, value);
  } else if (c >= '0' && c <= '7') {
    PAGODA_ASSIGN_OR_RETURN(const std::uint32_t value, TakeNumber(rest, 3, 8, line));
    AppendUtf8(text, value);
  } else if (c == 'N') {
    return NotSupported(line, "a named character escape in a string");
  } else if (static_cast<unsigned char>(c) >= 0x80) {
    return NotSupported(line, "a backslash before a character outside ASCII");
  } else {
    text += '\\';
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DecodeStringLiteral(std::string_view body, std::uint32_t line) {
  std::string text;
  text.reserve(body.size());
  while (!body.empty()) {
    if (body[0] == '\\' && body.size() > 1) {
      body.remove_prefix(1);
      PAGODA_RETURN_IF_ERROR(TakeEscape(body, text, line));
    } else {
      text += body[0];
      body.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace pagoda::text::jinja
