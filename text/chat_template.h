#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/marked_text.h"

namespace pagoda::text {

struct ChatMessage {
  std::string role;
  std::string content;
  // Further entries of the message (tool_calls, tool_call_id, name ...) as a JSON object, which may
  // also replace the two above; empty: none.
  std::string fields_json = {};
};

struct ChatTemplateOptions {
  bool add_generation_prompt = true;
  std::string bos_token = {};  // empty: the model has none, and the template finds it undefined
  std::string eos_token = {};
  // The tools that the model may call, each a JSON object: the template's `tools`.
  std::span<const std::string> tools_json = {};
  // Further variables (documents, date_string ...) as a JSON object, before the standard ones where
  // both name one; empty: none.
  std::string variables_json = {};
  // Whether tools and variables that the template does not speak of are refused, as they would
  // change nothing, and variables that are set here already.
  bool strict_variables = false;
  // The moment, in seconds since 1970, UTC, that strftime_now tells; absent: the template finds no
  // such function.
  std::optional<std::int64_t> unix_seconds = {};
};

// A model's Jinja chat template, parsed once. Const after Parse; threads: any.
class ChatTemplate {
 public:
  // Errors (InvalidArgument) name the line and what is wrong or not supported. `source` is bounded
  // (kMaxTemplateBytes).
  static absl::StatusOr<std::unique_ptr<const ChatTemplate>> Parse(std::string_view source);
  virtual ~ChatTemplate() = default;

  // What the caller sends is marked as the caller's. Errors name the line and whose fault they are:
  // a FieldError (messages, tools_json, template_variables_json) the caller's, raise_exception's
  // words among them; FailedPrecondition the template's: chat_template.cc draws the line. Steps,
  // depth and output are bounded by name.
  virtual absl::StatusOr<MarkedText> Render(std::span<const ChatMessage> messages,
                                            const ChatTemplateOptions& options) const = 0;

  static constexpr std::size_t kMaxTemplateBytes = 1 << 20;
};

}  // namespace pagoda::text
