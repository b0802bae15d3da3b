#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/kv_geometry.h"
#include "formats/gguf.h"

namespace pagoda::model {

// The mathematics of one model of the Llama family: plain data, complete, validated.
struct Config {
  std::string name;
  std::int32_t num_layers = 0;
  std::int32_t hidden_size = 0;
  std::int32_t feed_forward_size = 0;
  std::int32_t num_heads = 0;     // H
  std::int32_t num_kv_heads = 0;  // G
  std::int32_t head_size = 0;     // D; not always hidden_size / num_heads
  std::int32_t rotary_size = 0;   // leading dims of a head that turn
  std::int32_t context_length = 0;
  std::uint32_t num_vocabulary_rows =
      0;                              // of the embedding; the rows past the tokenizer's are padding
  std::uint32_t vocabulary_size = 0;  // of the tokenizer
  float rms_epsilon = 0.0f;
  double rope_base = 10000.0;
  double rope_position_scale = 1.0;  // positions are divided by it (linear scaling)

  base::KvGroup KvGroupFor(base::KvType type) const {
    return {.num_layers = num_layers,
            .window_tokens = std::nullopt,
            .num_kv_heads = num_kv_heads,
            .head_size = head_size,
            .type = type};
  }
};

// Reads the metadata of a Llama model. Closed world: every key `llama.*` is consumed or the load is
// refused with its name; so is everything else that says the file is not one whole Llama model.
// `general.*` and `tokenizer.*` do not change the forward pass. Errors: InvalidArgument (key,
// found, expected), Unimplemented (what this model needs and Pagoda lacks).
absl::StatusOr<Config> ReadConfig(const formats::GgufFile& file);

}  // namespace pagoda::model
