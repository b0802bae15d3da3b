#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/kv_geometry.h"
#include "formats/gguf.h"

namespace pagoda::model {

// The mathematics of one model of the Llama family: plain data, complete, validated.
struct Config {
  // Which dims of a head turn together. GGUF's llama weights were reordered so that neighbours do.
  enum class RotaryPairs : std::uint8_t { kInterleaved, kHalves };
  // Where the weights of the head come from.
  enum class Head : std::uint8_t {
    kOwn,        // a tensor of its own, which must be there
    kEmbedding,  // the embedding; a tensor of the head's name must equal it
    kEither,     // its own tensor where there is one, else the embedding
  };
  // Slows the low frequencies of a longer context: of wavelengths above original_context /
  // low_frequency_factor by `factor`, of those below original_context / high_frequency_factor not
  // at all, between them by degrees.
  struct Llama3Scaling {
    double factor = 1.0;
    double low_frequency_factor = 1.0;
    double high_frequency_factor = 4.0;
    std::int32_t original_context = 0;
  };

  std::string architecture;  // "llama", "mistral", "qwen2"
  std::string name;
  std::int32_t num_layers = 0;
  std::int32_t hidden_size = 0;
  std::int32_t feed_forward_size = 0;
  std::int32_t num_heads = 0;     // H
  std::int32_t num_kv_heads = 0;  // G
  std::int32_t head_size = 0;     // D; not always hidden_size / num_heads
  std::int32_t rotary_size = 0;   // leading dims of a head that turn
  std::int32_t context_length = 0;
  // Of the embedding; the rows past the tokenizer's are padding.
  std::uint32_t num_vocabulary_rows = 0;
  std::uint32_t vocabulary_size = 0;  // of the tokenizer, where the files say it
  float rms_epsilon = 0.0f;
  double rope_base = 10000.0;
  double rope_position_scale = 1.0;  // positions are divided by it (linear scaling)
  std::optional<Llama3Scaling> llama3_scaling;
  RotaryPairs rotary_pairs = RotaryPairs::kInterleaved;
  bool has_qkv_bias = false;
  Head head = Head::kEither;

  base::KvGroup KvGroupFor(base::KvType type) const {
    return {.num_layers = num_layers,
            .window_tokens = std::nullopt,
            .num_kv_heads = num_kv_heads,
            .head_size = head_size,
            .type = type};
  }
};

// Reads the metadata of a model of the Llama family (`llama`, under which Mistral models come too,
// or `qwen2`). Closed world: every key of the architecture is consumed or the load is refused with
// its name; so is everything else that says the file is not one whole model.
// `general.*` and `tokenizer.*` do not change the forward pass. Errors: InvalidArgument (key,
// found, expected), Unimplemented (what this model needs and Pagoda lacks).
absl::StatusOr<Config> ReadConfig(const formats::GgufFile& file);

}  // namespace pagoda::model
