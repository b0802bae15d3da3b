#include "kernels/capabilities.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/strings.h"
#include "kernels/kv_support.h"

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

std::string WeightName(WeightSupport weight) {
  return absl::StrCat(Name(weight.format), " with ", Name(weight.activation), " activations");
}

}  // namespace

absl::Status CheckGeometry(const Capabilities& capabilities, const base::KvGeometry& geometry) {
  return CheckGeometry(KvSupport{.backend = capabilities.backend,
                                 .types = capabilities.kv_types,
                                 .head_sizes = capabilities.head_sizes,
                                 .block_sizes = capabilities.block_sizes},
                       geometry);
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
