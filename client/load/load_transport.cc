#include "client/load/load_transport.h"

namespace pagoda::client {

void TokenTimes::Take(base::Instant now, std::int64_t num_tokens) {
  if (num_tokens <= 0) return;
  if (num_tokens_ == 0) {
    first_ = now;
  } else {
    const std::int64_t gap = now.NanosSince(last_);
    for (std::int64_t i = 0; i < num_tokens; ++i) gaps_nanos_.push_back(gap / num_tokens);
  }
  last_ = now;
  num_tokens_ += num_tokens;
}

}  // namespace pagoda::client
