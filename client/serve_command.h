#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/model_file.h"
#include "client/plan_options.h"

namespace pagoda::client {

// `text` as one word of a POSIX shell; plain words stay as they are.
std::string ShellWord(std::string_view text);

// The line of a shell that serves what was planned, with a KV pool of so many bytes.
std::string ServeCommand(const FileOptions& file, const PlannedModel& model,
                         std::int64_t pool_bytes);

}  // namespace pagoda::client
