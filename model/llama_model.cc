#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/runtime/machine_cores.h"
#include "base/status_macros.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cuda/ops/cuda_ops.h"
#include "kernels/emulation/emulated_device.h"
#include "kernels/ops.h"
#include "kernels/reference/reference_ops.h"
#include "model/device_capabilities.h"
#include "model/forward_pass.h"
#include "model/kv_storage.h"
#include "model/load_checks.h"
#include "model/load_plan.h"
#include "model/model.h"
#include "model/weights.h"

namespace pagoda::model {
namespace {

absl::StatusOr<std::unique_ptr<kernels::Ops>> MakeEmulatedCudaOps() {
  return kernels::cuda::MakeCudaOps(kernels::emulation::MakeEmulatedDevice({}));
}

absl::StatusOr<std::unique_ptr<kernels::Ops>> MakeOps(const ModelOptions& options) {
  PAGODA_RETURN_IF_ERROR(CapabilitiesOf(options.device).status());
  if (options.device == "emulated-cuda") return MakeEmulatedCudaOps();
  if (options.ops == "reference") return kernels::MakeReferenceOps();
  if (options.ops != "auto" && options.ops != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("ops '", options.ops, "'; expected auto, cpu or reference"));
  }
  return kernels::cpu::MakeCpuOps(
      {.num_threads = options.num_threads > 0 ? options.num_threads : base::AvailableCores(),
       .pin_threads = false,
       .instruction_class = std::nullopt});
}

absl::Status CheckLimits(const ModelOptions& options) {
  if (options.max_num_batched_tokens >= 1 && options.max_num_seqs >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a step of ", options.max_num_batched_tokens,
                                                 " tokens and ", options.max_num_seqs,
                                                 " sequences; expected at least 1"));
}

// A model of the Llama family. Members stand in the order in which they refer to each other:
// later ones point into earlier ones.
class LlamaModel final : public Model {
 public:
  LlamaModel(std::unique_ptr<Checkpoint> checkpoint, std::unique_ptr<kernels::Ops> ops,
             Config config, const ModelOptions& options)
      : checkpoint_(std::move(checkpoint)),
        ops_(std::move(ops)),
        config_(std::move(config)),
        options_(options) {}

  absl::Status Initialize(const LoadPlan& plan);

  const ModelInfo& info() const override { return info_; }

  absl::Status AllocateKv(std::int32_t num_blocks) override {
    PAGODA_CHECK(kv_.num_blocks() == 0);
    PAGODA_ASSIGN_OR_RETURN(kv_, KvStorage::Create(ops_->device(), info_.kv_geometry, num_blocks,
                                                   ops_->capabilities().key_order));
    return absl::OkStatus();
  }

  void ZeroBlock(base::KvGroupId group, base::BlockId block) override {
    PAGODA_CHECK(block != base::kNullBlock);
    const std::uint32_t index = block.value();
    ops_->ZeroBlocks(kv_.view(group), {&index, 1}, kernels::Stream{});
    AwaitAll();
  }

  void CopyBlock(base::KvGroupId group, base::BlockId source, base::BlockId target,
                 std::int32_t num_slots) override {
    PAGODA_CHECK(target != base::kNullBlock);
    PAGODA_CHECK(source != base::kNullBlock);
    const kernels::BlockCopy copy{source.value(), target.value(), num_slots};
    ops_->CopyBlocks(kv_.view(group), {&copy, 1}, kernels::Stream{});
    AwaitAll();
  }

  absl::Status Forward(const ModelInput& input) override {
    PAGODA_CHECK_MSG(kv_.num_blocks() > 0, "AllocateKv comes first");
    PAGODA_RETURN_IF_ERROR(pass_->Run(input, kv_.view(base::KvGroupId{0})));
    kv_.CheckGaps();
    return absl::OkStatus();
  }

  std::span<float> Logits(std::int32_t row) override { return pass_->Logits(row); }

  std::unique_ptr<Sampler> MakeSampler() override {
    return std::make_unique<Sampler>(*ops_, options_.max_num_seqs, info_.vocabulary_size);
  }

 private:
  // The parameters of an op live until it is done.
  void AwaitAll() {
    const absl::Status done = ops_->device().Await(ops_->device().Record(kernels::Stream{}));
    PAGODA_CHECK_MSG(done.ok(), std::string(done.message()));
  }

  void FillInfo(const LoadPlan& plan);

  const std::unique_ptr<Checkpoint> checkpoint_;
  const std::unique_ptr<kernels::Ops> ops_;
  const Config config_;
  const ModelOptions options_;
  ModelInfo info_;
  Weights weights_;
  std::unique_ptr<ForwardPass> pass_;
  KvStorage kv_;
};

absl::Status LlamaModel::Initialize(const LoadPlan& plan) {
  PAGODA_RETURN_IF_ERROR(CheckLimits(options_));
  PAGODA_RETURN_IF_ERROR(CheckVocabulary(options_.vocabulary_size, config_));
  FillInfo(plan);
  PAGODA_RETURN_IF_ERROR(kernels::CheckGeometry(ops_->capabilities(), info_.kv_geometry));
  PAGODA_ASSIGN_OR_RETURN(
      weights_, LoadWeights(plan.weights, config_, *ops_, plan.activation, options_.stop_asked));
  PAGODA_ASSIGN_OR_RETURN(
      pass_, ForwardPass::Create(
                 config_, weights_, *ops_,
                 {.max_tokens = options_.max_num_batched_tokens,
                  .max_sequences = options_.max_num_seqs,
                  .max_logit_rows = std::max(options_.max_logit_rows, options_.max_num_seqs),
                  .max_positions = plan.memory.max_model_len}));
  return absl::OkStatus();
}

void LlamaModel::FillInfo(const LoadPlan& plan) {
  info_.architecture = config_.architecture;
  info_.name = config_.name;
  info_.weight_format = plan.weights.weight_format;
  info_.activation_dtype = plan.activation_dtype;
  info_.kv_cache_dtype = base::Name(plan.kv_geometry.groups.front().type);
  info_.numerics_id = absl::StrCat(ops_->capabilities().numerics_id, "/", info_.activation_dtype);
  info_.digest = ModelDigest(*checkpoint_, config_);
  info_.num_parameters = plan.weights.num_parameters;
  info_.weight_bytes = plan.memory.weight_bytes;
  info_.context_length = config_.context_length;
  info_.vocabulary_size =
      options_.vocabulary_size > 0 ? options_.vocabulary_size : config_.vocabulary_size;
  info_.kv_geometry = plan.kv_geometry;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Load(const std::string& path,
                                                   const ModelOptions& options) {
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Ops> ops, MakeOps(options));
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(path));
  PAGODA_ASSIGN_OR_RETURN(const LoadPlan plan,
                          PlanLoad(*checkpoint,
                                   {.activation_dtype = options.activation_dtype,
                                    .kv_cache_dtype = options.kv_cache_dtype,
                                    .block_size = options.block_size,
                                    .max_model_len = options.max_model_len},
                                   ops->capabilities().pack_layout));
  auto model =
      std::make_unique<LlamaModel>(std::move(checkpoint), std::move(ops), plan.config, options);
  PAGODA_RETURN_IF_ERROR(model->Initialize(plan));
  return model;
}

}  // namespace pagoda::model
