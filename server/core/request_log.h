#pragma once

#include <string>

#include "server/core/reply.h"
#include "server/core/response_stream.h"

namespace pagoda::server {

// The one line a request leaves in the log: ids, outcome, counts, times. Never a word of prompt or
// reply, and no error text, which could quote them. The caller's label is cut to printable ASCII.
std::string RequestLogLine(const ResponseStream::Identity& identity, const ReplyEnd& end);

}  // namespace pagoda::server
