#pragma once

#include <string>
#include <vector>

#include "client/options.h"
#include "pagoda/v1/inference.pb.h"

namespace pagoda::client {

// Options to messages. A field whose flag was left out stays absent. `text` is the prompt when it
// is not token ids.
v1::GenerateRequest MakeGenerateRequest(const Options& options, const std::string& text);
v1::ChatRequest MakeChatRequest(const Options& options,
                                const std::vector<v1::ChatMessage>& history);

}  // namespace pagoda::client
