// libFuzzer entry: any bytes at all are either refused or give a file whose every view can be read
// and whose tensors cover its data.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::formats::SafetensorsFile;
  // A copy of exactly the right size: one byte read past the end is then a report.
  const std::vector<std::uint8_t> exact(data, data + size);
  const auto file = SafetensorsFile::Parse(std::as_bytes(std::span(exact)), "fuzz");
  if (!file.ok()) return 0;
  std::size_t sum = 0;
  std::size_t num_bytes = 0;
  for (const auto& tensor : (*file)->tensors()) {
    PAGODA_CHECK((*file)->FindTensor(tensor.name) == &tensor);
    num_bytes += tensor.data.size();
    if (!tensor.data.empty()) sum += static_cast<std::size_t>(tensor.data.back());
  }
  PAGODA_CHECK(num_bytes + sizeof(std::uint64_t) <= size);
  return sum == SIZE_MAX ? 1 : 0;
}
