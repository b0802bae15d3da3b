// libFuzzer entry: any config.json at all is either refused or gives sizes that a model can have.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "formats/json_document.h"
#include "model/folder_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = pagoda::formats::JsonDocument::Parse(text, "fuzz");
  if (!document.ok()) return 0;
  const auto config = pagoda::model::ReadConfig(**document);
  if (!config.ok()) return 0;
  PAGODA_CHECK(config->num_layers > 0);
  PAGODA_CHECK(config->num_heads > 0);
  PAGODA_CHECK(config->num_kv_heads > 0);
  PAGODA_CHECK(config->num_heads % config->num_kv_heads == 0);
  PAGODA_CHECK(config->head_size > 0);
  PAGODA_CHECK(config->context_length > 0);
  return 0;
}
