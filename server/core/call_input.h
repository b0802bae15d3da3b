#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "scheduler/request.h"
#include "text/chat_template.h"

namespace pagoda::server {

struct TextPrompt {
  std::string text;
  bool parse_special_tokens = false;
  std::optional<bool> add_bos;
};

struct ChatPrompt {
  std::vector<text::ChatMessage> messages;
  bool add_generation_prompt = true;
  std::vector<std::string> tools_json = {};
  std::string template_variables_json = {};
};

using TokenPrompt = std::vector<base::TokenId>;
using PromptInput = std::variant<TextPrompt, TokenPrompt, ChatPrompt>;

// What comes back beside the reply, and how its text is written.
struct OutputOptions {
  bool echo = false;
  bool skip_special_tokens = true;
};

// One request as a door has parsed it: plain values, absent apart from zero, nothing checked yet.
struct CallInput {
  std::string model;  // empty: the one that is loaded
  PromptInput prompt;
  scheduler::RequestFields fields;
  std::vector<std::string> stops;
  std::vector<std::string> bad_words;
  OutputOptions output;
  std::optional<std::string> cache_salt;
  std::string client_request_id;  // a label for logs
};

inline constexpr std::size_t kMaxClientRequestIdBytes = 128;

}  // namespace pagoda::server
