#include "kernels/kv_support.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/strings.h"

namespace pagoda::kernels {
namespace {

template <typename T>
bool Has(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

absl::Status Missing(const KvSupport& support, std::string_view what, std::string_view found,
                     const std::string& supported) {
  return absl::InvalidArgumentError(absl::StrCat("the ", support.backend, " backend has no ",
                                                 base::ToAbsl(what), " ", base::ToAbsl(found),
                                                 "; it has ", supported));
}

std::string Names(const std::vector<base::KvType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, base::KvType type) {
    absl::StrAppend(out, base::Name(type));
  });
}

}  // namespace

KvSupport KvSupportOf(PackLayout layout) {
  using base::KvType;
  switch (layout) {
    case PackLayout::kRows:
      return {.backend = "reference",
              .types = {KvType::kBf16, KvType::kF32},
              .head_sizes = {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256},
              .block_sizes = {1, 2, 4, 8, 16, 32, 64, 128, 256}};
    case PackLayout::kColumnPanels:
      return {
          .backend = "cpu",
          .types = {KvType::kBf16, KvType::kF32},
          .head_sizes = {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256},
          .block_sizes = {1, 2, 4, 8, 16, 32, 64, 128, 256}};
    case PackLayout::kBf16Rows:
      return {.backend = "cuda",
              .types = {KvType::kBf16},
              .head_sizes = {32, 64, 96, 128, 256},
              .block_sizes = {4, 8, 16, 32, 64}};
  }
  PAGODA_CHECK_MSG(false, "no such layout");
  return {};
}

absl::Status CheckGeometry(const KvSupport& support, const base::KvGeometry& geometry) {
  if (!Has(support.block_sizes, geometry.block_size)) {
    return Missing(support, "block size", std::to_string(geometry.block_size),
                   absl::StrJoin(support.block_sizes, ", "));
  }
  for (const base::KvGroup& group : geometry.groups) {
    if (!Has(support.types, group.type)) {
      return Missing(support, "KV type", base::Name(group.type), Names(support.types));
    }
    if (!Has(support.head_sizes, group.head_size)) {
      return Missing(support, "head size", std::to_string(group.head_size),
                     absl::StrJoin(support.head_sizes, ", "));
    }
    if (group.window_tokens.has_value()) {
      return Missing(support, "sliding window of", std::to_string(*group.window_tokens),
                     "full attention");
    }
  }
  return absl::OkStatus();
}

}  // namespace pagoda::kernels
