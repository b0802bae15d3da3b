#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/load_plan.h"

namespace pagoda::client {

// What `inspect` and `plan` were asked.
struct FileOptions {
  std::string path;
  bool lists_tensors = false;  // inspect

  // plan
  model::LoadOptions load;  // load.max_model_len is --context
  std::int32_t batch = 64;  // requests that run at once, each of full length
  std::string target = "cpu";
  std::optional<std::string> memory;  // none: what the target has
};

}  // namespace pagoda::client
