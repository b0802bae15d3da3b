#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/call_input.h"
#include "server/core/served_model.h"
#include "server/core/text_workers.h"

namespace pagoda::server {

// `done` is called once, on a text worker.
using TokenizeDone = std::function<void(absl::StatusOr<std::vector<base::TokenId>> tokens,
                                        std::string rendered_text)>;
std::unique_ptr<TextCall> MakeTokenizeCall(PromptInput prompt, const ServedModel& model,
                                           TokenizeDone done);

using DetokenizeDone = std::function<void(absl::StatusOr<std::string> text)>;
std::unique_ptr<TextCall> MakeDetokenizeCall(std::vector<base::TokenId> tokens, bool skip_special,
                                             const ServedModel& model, DetokenizeDone done);

}  // namespace pagoda::server
