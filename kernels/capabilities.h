#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/kv_geometry.h"
#include "kernels/kernels_pack.h"
#include "kernels/kv_view.h"
#include "kernels/tensor_view.h"

namespace pagoda::kernels {

// A weight format may run with an activation type.
struct WeightSupport {
  ElementType format = ElementType::kF32;
  ActivationType activation = ActivationType::kF32;
  friend bool operator==(const WeightSupport&, const WeightSupport&) = default;
};

// What a backend can do, checked by name at start so that no op meets a case it does not know.
struct Capabilities {
  std::string backend;  // "reference", "cpu"
  // The order of operations: equal ids give equal bits. Part of every block key.
  std::string numerics_id;
  std::vector<base::KvType> kv_types;
  std::vector<std::int32_t> head_sizes;
  std::vector<std::int32_t> block_sizes;
  std::vector<WeightSupport> weights;  // of matmul
  std::vector<ElementType> embeddings;
  PackLayout pack_layout = PackLayout::kRows;
  KeyOrder key_order = KeyOrder::kTokenMajor;  // the fastest; both must work
};

// InvalidArgument naming what is missing and what there is.
absl::Status CheckGeometry(const Capabilities& capabilities, const base::KvGeometry& geometry);
absl::Status CheckWeight(const Capabilities& capabilities, std::string_view name,
                         ElementType format, ActivationType activation);

}  // namespace pagoda::kernels
