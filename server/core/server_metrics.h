#pragma once

#include "base/runtime/metric.h"

namespace pagoda::server {

// What the request pipeline counts. An exporter reads them; nothing decides by them.
struct ServerMetrics {
  base::Counter requests_accepted;
  base::Counter requests_refused;    // at the gate or before it
  base::Counter requests_completed;  // ended OK
  base::Counter requests_cancelled;  // by the caller or its deadline
  base::Counter requests_failed;     // ended in any other way
  base::Counter slow_readers;        // ended or closed because nobody read
  base::Counter pauses;
  base::Counter prompt_tokens;
  base::Counter cached_tokens;
  base::Counter generated_tokens;
};

}  // namespace pagoda::server
