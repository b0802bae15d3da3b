#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/kv_geometry.h"
#include "model/sampler.h"

namespace pagoda::model {

// One sequence's share of a step. All spans live until the step has finished.
struct SequenceInput {
  base::SlotId slot;
  std::int32_t first_row = 0;  // of ModelInput::tokens
  std::int32_t num_tokens = 0;
  std::int32_t first_position = 0;  // of the first token; context = first_position + num_tokens
  std::int32_t num_without_kv = 0;  // leading rows whose KV is already in the pool: not written
  // Per KV group: the block of each block_size positions; entries past the context are never read.
  std::vector<std::span<const std::uint32_t>> block_tables;
};

struct ModelInput {
  std::span<const base::TokenId> tokens;  // [T]
  std::span<const SequenceInput> sequences;
  std::span<const std::int32_t> logit_rows;  // [R], rows of tokens that reach the LM head
};

// Reserve of rows and sizes, fixed at start.
struct ModelOptions {
  std::string device = "cpu";             // or emulated-cuda
  std::string activation_dtype = "auto";  // auto, f32, bf16, int8
  std::string kv_cache_dtype = "auto";    // auto, bf16, f32
  std::string ops = "auto";               // auto, reference: the plain loops, for tests
  std::int32_t num_threads = 0;           // 0: one per core
  std::int32_t block_size = 16;
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t max_num_seqs = 64;
  std::int32_t max_logit_rows = 0;    // of a step; 0: max_num_seqs
  std::int32_t max_model_len = 0;     // 0: the model's own
  std::uint32_t vocabulary_size = 0;  // of the tokenizer; 0: what the model's files say
  // Asked between the steps of a load, tensors among them; true ends it with Cancelled.
  std::function<bool()> stop_asked = {};
};

// What was loaded, for GetModel, validation and the planner.
struct ModelInfo {
  std::string architecture, name;
  std::string weight_format, activation_dtype, kv_cache_dtype;
  std::string numerics_id;  // backend, instruction class, activation type, contract version
  std::array<std::uint8_t, 32> digest{};
  std::int64_t num_parameters = 0;
  std::int64_t weight_bytes = 0;
  std::int32_t context_length = 0;    // what the model was made for
  std::uint32_t vocabulary_size = 0;  // of the tokenizer; logit rows may be padded beyond it
  base::KvGeometry kv_geometry;
};

// A loaded model with its KV pool on one device: forward pass and sampling. Everything is allocated
// by Load and AllocateKv. Thread: the engine's.
class Model {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& path,
                                                     const ModelOptions& options);
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  // Once, before the first step. The null block included.
  virtual absl::Status AllocateKv(std::int32_t num_blocks) = 0;

  virtual void ZeroBlock(base::KvGroupId group, base::BlockId block) = 0;
  virtual void CopyBlock(base::KvGroupId group, base::BlockId source, base::BlockId target,
                         std::int32_t num_slots) = 0;

  // Runs the step; logits of row r are then at Logits(r), [vocabulary], fp32.
  virtual absl::Status Forward(const ModelInput& input) = 0;
  virtual std::span<float> Logits(std::int32_t row) = 0;

  // A sampler for this model's logits. The model must outlive it.
  virtual std::unique_ptr<Sampler> MakeSampler() = 0;
};

}  // namespace pagoda::model
