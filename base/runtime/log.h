#pragma once

#include <cstdint>
#include <string_view>

namespace pagoda::base {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// Lines go to stderr: time, level, text. Threads: any. Nothing a client sent (prompt, reply, token)
// is ever logged.
void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view text);
inline void LogInfo(std::string_view text) { Log(LogLevel::kInfo, text); }
inline void LogWarning(std::string_view text) { Log(LogLevel::kWarning, text); }
inline void LogError(std::string_view text) { Log(LogLevel::kError, text); }

}  // namespace pagoda::base
