// libFuzzer entry: any bytes at all are either refused or give a file whose every view can be read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "formats/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::formats::GgufFile;
  // A copy of exactly the right size: one byte read past the end is then a report.
  const std::vector<std::uint8_t> exact(data, data + size);
  const auto file = GgufFile::Parse(std::as_bytes(std::span(exact)), "fuzz");
  if (!file.ok()) return 0;
  std::size_t sum = 0;
  for (const auto& [key, value] : (*file)->metadata()) {
    PAGODA_CHECK((*file)->Find(key) == &value);
    const auto texts = (*file)->Strings(key);
    if (!texts.ok()) continue;
    for (const std::string_view text : *texts) sum += text.empty() ? 0u : text.back() == 'a';
  }
  for (const auto& tensor : (*file)->tensors()) {
    PAGODA_CHECK((*file)->FindTensor(tensor.name) == &tensor);
    if (!tensor.data.empty()) sum += static_cast<std::size_t>(tensor.data.back());
  }
  return sum == SIZE_MAX ? 1 : 0;
}
