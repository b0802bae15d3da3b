// One pass over the source. Outside tags only the three openings matter; inside a tag the brackets
// are counted, because a tag cannot end inside them.
#include "text/jinja/lexer.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/template_error.h"
#include "text/jinja/unicode_space.h"

namespace pagoda::text::jinja {
namespace {

using base::ToAbsl;

// Longest first.
constexpr std::array<std::string_view, 25> kOperators = {
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }
constexpr char ClosingOf(char opening) { return opening == '(' ? ')' : opening == '[' ? ']' : '}'; }

// Every kind of line end becomes one newline; the last one of the source is dropped.
std::string NormaliseNewlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (position_ < source_.size()) {
      const std::size_t tag = FindTag();
      if (tag == std::string::npos) {
        AddData(rest());
        Skip(rest().size());
        break;
      }
      PAGODA_RETURN_IF_ERROR(ReadDataAndTag(tag));
    }
    Add(Token::Kind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(position_); }

  std::size_t FindTag() const {
    for (std::size_t at = source_.find('{', position_); at != std::string::npos;
         at = source_.find('{', at + 1)) {
      if (at + 1 >= source_.size()) break;
      const char kind = source_[at + 1];
      if (kind == '{' || kind == '%' || kind == '#') return at;
    }
    return std::string::npos;
  }

  void Add(Token::Kind kind, std::string_view text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::string(text)});
  }

  void AddData(std::string_view text) {
    if (!text.empty()) Add(Token::Kind::kData, text);
  }

  void Skip(std::size_t bytes) {
    for (const char c : rest().substr(0, bytes)) line_ += c == '\n' ? 1 : 0;
    position_ += bytes;
  }

  absl::Status ReadDataAndTag(std::size_t tag) {
    const std::string_view text = rest().substr(0, tag - position_);
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const bool has_sign = sign == '-' || sign == '+';
    AddData(TrimBeforeTag(text, kind, sign));
    Skip(text.size() + (has_sign ? 3 : 2));
    if (kind == '#') return SkipComment();
    Add(kind == '{' ? Token::Kind::kVariableBegin : Token::Kind::kBlockBegin, {});
    return ReadTag(kind);
  }

  std::string_view TrimBeforeTag(std::string_view text, char kind, char sign) const {
    if (sign == '-') return text.substr(0, text.size() - TrailingSpaceBytes(text));
    if (sign == '+' || kind == '{') return text;
    const std::size_t newline = text.rfind('\n');
    const bool line_in_text = newline != std::string_view::npos;
    if (!line_in_text && !line_starting_) return text;
    const std::size_t line_begin = line_in_text ? newline + 1 : 0;
    const std::string_view line = text.substr(line_begin);
    return LeadingSpaceBytes(line) == line.size() ? text.substr(0, line_begin) : text;
  }

  absl::Status SkipComment() {
    const std::size_t end = source_.find("#}", position_);
    if (end == std::string::npos) return ErrorAtLine(line_, "the comment has no end '#}'");
    const char sign = end > position_ ? source_[end - 1] : '\0';
    Skip(end - position_);
    EndTag(2, sign, true);
    return absl::OkStatus();
  }

  // Takes the `bytes` that end a tag, and the blank space after them that goes with it.
  void EndTag(std::size_t bytes, char sign, bool trims_newline) {
    Skip(bytes);
    std::size_t blank = 0;
    if (sign == '-') {
      blank = LeadingSpaceBytes(rest());
    } else if (sign != '+' && trims_newline && rest().starts_with('\n')) {
      blank = 1;
    }
    line_starting_ = blank > 0 && rest()[blank - 1] == '\n';
    Skip(blank);
  }

  absl::Status ReadTag(char kind) {
    const std::uint32_t begin_line = line_;
    std::vector<char> open_brackets;
    while (position_ < source_.size()) {
      if (open_brackets.empty() && TryEndTag(kind)) return absl::OkStatus();
      const std::size_t blank = LeadingSpaceBytes(rest());
      if (blank > 0) {
        Skip(blank);
        continue;
      }
      PAGODA_RETURN_IF_ERROR(ReadToken(open_brackets));
    }
    return ErrorAtLine(
        begin_line, kind == '{' ? "the tag '{{' has no end '}}'" : "the tag '{%' has no end '%}'");
  }

  bool TryEndTag(char kind) {
    const bool is_block = kind == '%';
    const std::string_view end = is_block ? "%}" : "}}";
    const char sign = rest()[0];
    const bool has_sign = sign == '-' || (sign == '+' && is_block);
    if (!rest().substr(has_sign ? 1 : 0).starts_with(end)) return false;
    Add(is_block ? Token::Kind::kBlockEnd : Token::Kind::kVariableEnd, {});
    EndTag(has_sign ? 3 : 2, has_sign ? sign : '\0', is_block);
    return true;
  }

  absl::Status ReadToken(std::vector<char>& open_brackets) {
    const char c = rest()[0];
    if (IsDigit(c)) return ReadInteger();
    if (c == '\'' || c == '"') return ReadString(c);
    if (IsNameStart(c)) return ReadName();
    return ReadOperator(open_brackets);
  }

  // Text up to `{% endraw %}` is not made of tokens, so this must be seen here.
  absl::Status ReadName() {
    std::size_t length = 1;
    while (length < rest().size() && IsNamePart(rest()[length])) ++length;
    const std::string_view name = rest().substr(0, length);
    if (name == "raw" && tokens_.back().kind == Token::Kind::kBlockBegin) {
      return NotSupported(line_, "the tag 'raw'");
    }
    Add(Token::Kind::kName, name);
    Skip(length);
    return absl::OkStatus();
  }

  absl::Status ReadInteger() {
    std::size_t length = 1;
    while (length < rest().size() && IsDigit(rest()[length])) ++length;
    const std::string_view digits = rest().substr(0, length);
    const std::string_view after = rest().substr(length);
    const bool has_fraction = after.size() > 1 && after[0] == '.' && IsDigit(after[1]);
    if (has_fraction || (!after.empty() && IsNamePart(after[0])) ||
        (digits.size() > 1 && digits[0] == '0')) {
      return NotSupported(line_, "a number other than a plain decimal integer");
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc()) return NotSupported(line_, "an integer of more than 63 bits");
    Add(Token::Kind::kInteger, digits);
    tokens_.back().integer = value;
    Skip(length);
    return absl::OkStatus();
  }

  absl::Status ReadString(char quote) {
    std::size_t end = 1;
    while (end < rest().size() && rest()[end] != quote) end += rest()[end] == '\\' ? 2 : 1;
    if (end >= rest().size()) return ErrorAtLine(line_, "a string has no end");
    PAGODA_ASSIGN_OR_RETURN(const std::string value,
                            DecodeStringLiteral(rest().substr(1, end - 1), line_));
    Add(Token::Kind::kString, value);
    Skip(end + 1);
    return absl::OkStatus();
  }

  absl::Status ReadOperator(std::vector<char>& open_brackets) {
    for (const std::string_view op : kOperators) {
      if (!rest().starts_with(op)) continue;
      PAGODA_RETURN_IF_ERROR(TrackBracket(op[0], open_brackets));
      Add(Token::Kind::kOperator, op);
      Skip(op.size());
      return absl::OkStatus();
    }
    const Utf8Unit unit = ReadUtf8(rest());
    return ErrorAtLine(line_, absl::StrCat("unexpected character '",
                                           ToAbsl(rest().substr(0, unit.length)), "' in a tag"));
  }

  absl::Status TrackBracket(char c, std::vector<char>& open_brackets) const {
    if (c == '(' || c == '[' || c == '{') open_brackets.push_back(c);
    if (c != ')' && c != ']' && c != '}') return absl::OkStatus();
    if (open_brackets.empty() || ClosingOf(open_brackets.back()) != c) {
      return ErrorAtLine(line_, absl::StrCat("unexpected '", std::string(1, c), "'"));
    }
    open_brackets.pop_back();
    return absl::OkStatus();
  }

  const std::string source_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  bool line_starting_ = true;  // the next byte is the first of its line
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) {
  return Lexer(NormaliseNewlines(source)).Run();
}

}  // namespace pagoda::text::jinja
