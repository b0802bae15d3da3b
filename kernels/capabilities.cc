#include "kernels/capabilities.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/strings.h"

namespace pagoda::kernels {
namespace {

template <typename T>
bool Has(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

absl::Status Missing(const Capabilities& capabilities, std::string_view what,
                     std::string_view found, const std::string& supported) {
  return absl::InvalidArgumentError(absl::StrCat("the ", capabilities.backend, " backend has no ",
                                                 base::ToAbsl(what), " ", base::ToAbsl(found),
                                                 "; it has ", supported));
}

std::string KvTypeNames(const std::vector<base::KvType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, base::KvType type) {
    absl::StrAppend(out, base::Name(type));
  });
}

std::string WeightName(WeightSupport weight) {
  return absl::StrCat(Name(weight.format), " with ", Name(weight.activation), " activations");
}

}  // namespace

absl::Status CheckGeometry(const Capabilities& capabilities, const base::KvGeometry& geometry) {
  if (!Has(capabilities.block_sizes, geometry.block_size)) {
    return Missing(capabilities, "block size", std::to_string(geometry.block_size),
                   absl::StrJoin(capabilities.block_sizes, ", "));
  }
  for (const base::KvGroup& group : geometry.groups) {
    if (!Has(capabilities.kv_types, group.type)) {
      return Missing(capabilities, "KV type", base::Name(group.type),
                     KvTypeNames(capabilities.kv_types));
    }
    if (!Has(capabilities.head_sizes, group.head_size)) {
      return Missing(capabilities, "head size", std::to_string(group.head_size),
                     absl::StrJoin(capabilities.head_sizes, ", "));
    }
    if (group.window_tokens.has_value()) {
      return Missing(capabilities, "sliding window of", std::to_string(*group.window_tokens),
                     "full attention");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWeight(const Capabilities& capabilities, std::string_view name,
                         ElementType format, ActivationType activation) {
  const WeightSupport wanted = {format, ActivationFor(format, activation)};
  if (Has(capabilities.weights, wanted)) return absl::OkStatus();
  return Missing(
      capabilities, absl::StrCat("weight format for ", base::ToAbsl(name), ":"), WeightName(wanted),
      absl::StrJoin(capabilities.weights, ", ", [](std::string* out, WeightSupport weight) {
        absl::StrAppend(out, WeightName(weight));
      }));
}

}  // namespace pagoda::kernels
