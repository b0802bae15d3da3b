#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/block_keys.h"
#include "scheduler/request.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::server {

// What GetModel tells. Filled once at start from what was loaded and decided.
struct ModelCard {
  std::vector<std::string> names;  // a request may use any; the first is the one in logs
  std::string architecture;
  std::int64_t num_parameters = 0;
  std::string weight_format;
  std::int64_t weight_bytes = 0;
  std::string activation_dtype;
  std::string kv_cache_dtype;
  std::string numerics_id;
  std::int32_t context_length = 0;
  std::int32_t num_kv_blocks = 0;
  std::int32_t max_num_seqs = 0;
  std::int32_t max_num_batched_tokens = 0;
  std::int64_t kv_bytes_per_token = 0;
};

// The one loaded model as the request pipeline sees it: its words, its limits, its identity; never
// its weights. Owner: the pipeline. Threads: const once the pipeline has it, any.
struct ServedModel {
  ModelCard card;
  scheduler::ModelLimits limits;  // the one source for validation and GetModel
  scheduler::KeyDomain key_domain;
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::unique_ptr<const text::ChatTemplate> chat_template;  // null: the model has none
};

}  // namespace pagoda::server
