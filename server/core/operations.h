#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/core/operator_desk.h"

namespace pagoda::server {

struct ReloadReport {
  bool in_effect = false;  // false: accepted, once what is held fits
  std::string summary;
};

// A journal that was written.
struct JournalReport {
  std::string path;
  std::int64_t bytes = 0;
};

// What operators can set in motion, as far as it is not the pipeline's own. Filled by main.
struct Operations {
  OperatorDesk* desk = nullptr;  // must outlive whoever has this; null: no commands
  // Reads the tenants again. On the desk's thread.
  std::function<absl::StatusOr<ReloadReport>()> reload = {};
  // Writes the scheduler's journal. On the desk's thread.
  std::function<absl::StatusOr<JournalReport>()> dump_journal = {};
  // Begins to drain, as SIGTERM does. Any thread; does not block.
  std::function<void()> drain = {};
};

}  // namespace pagoda::server
