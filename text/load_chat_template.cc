#include "text/load_chat_template.h"

#include <vector>

#include "base/status_macros.h"

namespace pagoda::text {

ChatTemplateOptions OptionsOf(const Tokenizer& tokenizer) {
  ChatTemplateOptions options;
  if (const auto bos = tokenizer.bos_token()) options.bos_token = tokenizer.Bytes(*bos);
  const std::vector<base::TokenId> eos = tokenizer.eos_tokens();
  if (!eos.empty()) options.eos_token = tokenizer.Bytes(eos.front());
  return options;
}

absl::StatusOr<std::unique_ptr<const ChatTemplate>> LoadChatTemplate(std::string_view source,
                                                                     const Tokenizer& tokenizer) {
  PAGODA_ASSIGN_OR_RETURN(auto parsed, ChatTemplate::Parse(source));
  ChatTemplateOptions options = OptionsOf(tokenizer);
  options.unix_seconds = 0;
  const std::vector<ChatMessage> conversations[] = {
      {{"system", "Be brief."}, {"user", "Hello!"}},
      {{"user", "Hello!"}, {"assistant", "Hello."}},
  };
  for (const std::vector<ChatMessage>& messages : conversations) {
    absl::Status tried = parsed->Render(messages, options).status();
    if (absl::IsFailedPrecondition(tried)) return tried;
  }
  return parsed;
}

}  // namespace pagoda::text
