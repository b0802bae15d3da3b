// Recursion follows the nesting of the value, which the workspace bounds by kMaxValueDepth.
#include "text/jinja/json_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "text/jinja/float_text.h"
#include "text/jinja/workspace.h"

namespace pagoda::text::jinja {
namespace {

constexpr std::int64_t kMaxIndent = 64;

class JsonWriter {
 public:
  JsonWriter(std::optional<std::int64_t> indent, Workspace& workspace)
      : indent_(indent), workspace_(workspace) {}

  absl::Status Write(const Value& value) {
    PAGODA_RETURN_IF_ERROR(workspace_.Spend(1));
    if (std::holds_alternative<None>(value)) return Put("null");
    if (const auto* flag = std::get_if<bool>(&value)) return Put(*flag ? "true" : "false");
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return Put(absl::StrCat(*integer));
    if (const auto* number = std::get_if<double>(&value)) return Put(FloatText(*number));
    if (const auto* text = std::get_if<const MarkedString*>(&value)) return WriteString(**text);
    if (const List* list = AsList(value)) return WriteList(*list);
    if (const auto* dict = std::get_if<const Dict*>(&value)) return WriteDict(**dict);
    return TypeError("has no form in JSON", value);
  }

  MarkedString TakeText() { return std::move(text_); }

 private:
  absl::Status Put(std::string_view text, bool from_input = false) {
    text_.Append(text, from_input);
    const std::size_t limit = kMaxWorkingBytes;
    return text_.held_bytes() <= limit
               ? absl::OkStatus()
               : Workspace::TooMuch("kMaxWorkingBytes", static_cast<std::int64_t>(limit));
  }

  absl::Status NewLine(int level) {
    if (!indent_.has_value()) return absl::OkStatus();
    PAGODA_RETURN_IF_ERROR(Put("\n"));
    return Put(
        std::string(static_cast<std::size_t>(*indent_) * static_cast<std::size_t>(level), ' '));
  }

  absl::Status PutSeparator(bool is_first) {
    if (is_first) return NewLine(level_);
    PAGODA_RETURN_IF_ERROR(Put(indent_.has_value() ? "," : ", "));
    return NewLine(level_);
  }

  absl::Status WriteList(const List& list) {
    if (list.items.empty()) return Put("[]");
    PAGODA_RETURN_IF_ERROR(Put("["));
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      PAGODA_RETURN_IF_ERROR(PutSeparator(i == 0));
      PAGODA_RETURN_IF_ERROR(Write(list.items[i]));
    }
    PAGODA_RETURN_IF_ERROR(NewLine(--level_));
    return Put("]");
  }

  absl::Status WriteDict(const Dict& dict) {
    if (dict.entries.empty()) return Put("{}");
    PAGODA_RETURN_IF_ERROR(Put("{"));
    ++level_;
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      PAGODA_RETURN_IF_ERROR(PutSeparator(i == 0));
      PAGODA_RETURN_IF_ERROR(WriteKey(dict.entries[i].first));
      PAGODA_RETURN_IF_ERROR(Put(": "));
      PAGODA_RETURN_IF_ERROR(Write(dict.entries[i].second));
    }
    PAGODA_RETURN_IF_ERROR(NewLine(--level_));
    return Put("}");
  }

  // JSON has string keys only; the other kinds of key are put between quotes.
  absl::Status WriteKey(const Value& key) {
    const bool is_text = std::holds_alternative<const MarkedString*>(key);
    if (!is_text) PAGODA_RETURN_IF_ERROR(Put("\""));
    PAGODA_RETURN_IF_ERROR(Write(key));
    return is_text ? absl::OkStatus() : Put("\"");
  }

  absl::Status WriteString(const MarkedString& text) {
    PAGODA_RETURN_IF_ERROR(workspace_.SpendOnBytes(text.bytes.size()));
    PAGODA_RETURN_IF_ERROR(Put("\""));
    absl::Status status;
    text.ForEachRun(0, text.bytes.size(), [&](std::string_view run, bool from_input) {
      if (status.ok()) status = Put(Escape(run), from_input);
    });
    PAGODA_RETURN_IF_ERROR(status);
    return Put("\"");
  }

  static std::string Escape(std::string_view text) {
    static constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kLetter = "\"\\bfnrt";
    std::string escaped;
    for (const char c : text) {
      if (const std::size_t at = kSpecial.find(c); at != std::string_view::npos) {
        escaped += '\\';
        escaped += kLetter[at];
      } else if (static_cast<unsigned char>(c) < 0x20) {
        absl::StrAppend(&escaped, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
      } else {
        escaped += c;
      }
    }
    return escaped;
  }

  const std::optional<std::int64_t> indent_;
  Workspace& workspace_;
  MarkedString text_;
  int level_ = 0;
};

}  // namespace

absl::StatusOr<MarkedString> ToJson(const Value& value, std::optional<std::int64_t> indent,
                                    Workspace& workspace) {
  if (indent.has_value() && *indent > kMaxIndent)
    return Workspace::TooMuch("kMaxIndent", kMaxIndent);
  if (indent.has_value()) indent = std::max<std::int64_t>(*indent, 0);
  JsonWriter writer(indent, workspace);
  PAGODA_RETURN_IF_ERROR(writer.Write(value));
  return writer.TakeText();
}

}  // namespace pagoda::text::jinja
