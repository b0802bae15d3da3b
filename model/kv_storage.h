#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/kv_geometry.h"
#include "kernels/device.h"
#include "kernels/kv_view.h"

namespace pagoda::model {

// The bytes of the KV pool: one memory per group, block-major, one block one extent, the null block
// first. In builds with PAGODA_TEST_CHECKS every block is followed by a gap, and gaps, null block
// and fresh blocks hold NaNs, so that a kernel that reads what it does not own shows it and one
// that writes there is found by CheckGaps. Owner: the model; the device must outlive it. Thread:
// the engine's.
class KvStorage {
 public:
  // ResourceExhausted with all numbers when the device has not that much.
  static absl::StatusOr<KvStorage> Create(kernels::Device& device, const base::KvGeometry& geometry,
                                          std::int32_t num_blocks, kernels::KeyOrder key_order);

  const kernels::KvView& view(base::KvGroupId group) const { return views_[group.value()]; }
  std::int32_t num_blocks() const { return num_blocks_; }
  // Aborts when something wrote between blocks or into the null block. Nothing to do in other
  // builds.
  void CheckGaps() const;

 private:
  std::int32_t num_blocks_ = 0;
  std::vector<kernels::DeviceMemory> memories_;
  std::vector<kernels::KvView> views_;
};

}  // namespace pagoda::model
