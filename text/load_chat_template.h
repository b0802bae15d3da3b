#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::text {

// What every rendering of a model's template is given of the model: its BOS and EOS. The rest is as
// ChatTemplateOptions has it.
ChatTemplateOptions OptionsOf(const Tokenizer& tokenizer);

// Parses a model's template and tries it on two short conversations, so that what is wrong with
// every conversation is said at the start and not to each caller. A template may refuse them by
// raise_exception. Errors: those of Parse, and FailedPrecondition of Render. Pure. Threads: any.
absl::StatusOr<std::unique_ptr<const ChatTemplate>> LoadChatTemplate(std::string_view source,
                                                                     const Tokenizer& tokenizer);

}  // namespace pagoda::text
