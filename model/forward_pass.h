#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/model.h"
#include "model/rope_tables.h"
#include "model/weights.h"

namespace pagoda::model {

struct ForwardLimits {
  std::int32_t max_tokens = 0;  // rows of a step
  std::int32_t max_sequences = 0;
  std::int32_t max_logit_rows = 0;
  std::int32_t max_positions = 0;
};

// The Llama network on one step's rows, in ops alone: it says what happens in which order, the
// backend how. Owns the activations. Nothing allocates after Create. Owner: the model; all
// references outlive it. Thread: the engine's.
class ForwardPass {
 public:
  static absl::StatusOr<std::unique_ptr<ForwardPass>> Create(const Config& config,
                                                             const Weights& weights,
                                                             kernels::Ops& ops,
                                                             const ForwardLimits& limits);

  // Requires: within the limits; sequences cover the tokens without overlap; tables reach their
  // contexts. Blocks until done.
  absl::Status Run(const ModelInput& input, const kernels::KvView& kv);
  // [vocabulary rows] of the i-th logit row of the last Run.
  std::span<float> Logits(std::int32_t row);

  ForwardPass(const Config& config, const Weights& weights, kernels::Ops& ops,
              const ForwardLimits& limits);  // for Create

 private:
  absl::Status Allocate();
  void LayOutRows(const ModelInput& input, const kernels::KvView& kv);
  void LayOutSequence(const SequenceInput& sequence, const kernels::KvView& kv);
  void RunLayer(std::int32_t layer, const kernels::KvView& kv);
  void RunAttention(std::int32_t layer, const kernels::KvView& kv);
  void RunFeedForward(std::int32_t layer);
  void RunHead(std::span<const std::int32_t> logit_rows);

  const Config& config_;
  const Weights& weights_;
  kernels::Ops& ops_;
  const ForwardLimits limits_;
  const RopeTables rope_;

  kernels::DeviceMemory memory_;
  // At their full heights; a step uses the first rows.
  kernels::MatrixView hidden_;        // [T, hidden]
  kernels::MatrixView normed_;        // [T, hidden]
  kernels::MatrixView qkv_;           // [T, (H + 2 G) D]
  kernels::MatrixView attention_;     // [T, H D]
  kernels::MatrixView gate_up_;       // [T, 2 F]
  kernels::MatrixView feed_forward_;  // [T, F]
  kernels::MatrixView gathered_;      // [R, hidden]
  kernels::MatrixView logits_;        // [R, vocabulary rows]

  // Of the step that runs; ops read them until its event.
  std::int64_t num_rows_ = 0;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> slots_;
  std::vector<kernels::AttentionWork> work_;
};

}  // namespace pagoda::model
