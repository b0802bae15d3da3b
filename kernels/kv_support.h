#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/kv_geometry.h"
#include "kernels/kernels_pack.h"

namespace pagoda::kernels {

// The KV caches that the kernels of a backend take. Data only, so that a planner refuses what a
// start would.
struct KvSupport {
  std::string backend;
  std::vector<base::KvType> types;
  std::vector<std::int32_t> head_sizes;
  std::vector<std::int32_t> block_sizes;
};

// Of the backend whose weights have this layout: the one place where it is written down.
KvSupport KvSupportOf(PackLayout layout);

// InvalidArgument naming what is missing and what there is.
absl::Status CheckGeometry(const KvSupport& support, const base::KvGeometry& geometry);

}  // namespace pagoda::kernels
