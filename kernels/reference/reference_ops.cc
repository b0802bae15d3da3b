#include "kernels/reference/reference_ops.h"

#include <utility>

#include "kernels/check_shapes.h"
#include "kernels/kv_support.h"
#include "kernels/reference/kv_store.h"
#include "kernels/reference/matmul.h"
#include "kernels/reference/paged_attention.h"
#include "kernels/reference/rope.h"
#include "kernels/reference/row_ops.h"
#include "kernels/reference/sample.h"
#include "kernels/reference/score.h"

namespace pagoda::kernels {
namespace {

Capabilities MakeCapabilities() {
  KvSupport kv = KvSupportOf(PackLayout::kRows);
  Capabilities made;
  made.backend = std::move(kv.backend);
  made.numerics_id = "fma32-1";
  made.kv_types = std::move(kv.types);
  made.head_sizes = std::move(kv.head_sizes);
  made.block_sizes = std::move(kv.block_sizes);
  for (const ElementType format : kAllElementTypes) {
    made.embeddings.push_back(format);
    made.weights.push_back({format, ActivationType::kF32});
    if (IsQuantized(format)) made.weights.push_back({format, ActivationType::kInt8});
  }
  made.pack_layout = PackLayout::kRows;
  made.key_order = KeyOrder::kTokenMajor;
  return made;
}

class ReferenceOps : public Ops {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }
  Device& device() override { return *device_; }

  void Embed(const EmbedParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::Embed(params);
  }
  void RmsNorm(const RmsNormParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::RmsNorm(params);
  }
  void Add(const AddParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::Add(params);
  }
  void Matmul(const MatmulParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::Matmul(params);
  }
  void Rope(const RopeParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::Rope(params);
  }
  void WriteKv(const WriteKvParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::WriteKv(params);
  }
  void Attention(const AttentionParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::PagedAttention(params);
  }
  void SiluMul(const SiluMulParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    reference::SiluMul(params);
  }
  void Sample(const SampleParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    for (std::size_t i = 0; i < params.rows.size(); ++i) {
      params.outcomes[i] = reference::Sample(params.rows[i]);
    }
  }
  void Score(const ScoreParams& params, Stream /*stream*/) override {
    CheckShapes(params);
    for (std::size_t i = 0; i < params.rows.size(); ++i) {
      params.outcomes[i] = reference::Score(params.rows[i]);
    }
  }
  void ZeroBlocks(const KvView& kv, std::span<const std::uint32_t> blocks,
                  Stream /*stream*/) override {
    CheckShapes(kv, blocks);
    reference::ZeroBlocks(kv, blocks);
  }
  void CopyBlocks(const KvView& kv, std::span<const BlockCopy> copies, Stream /*stream*/) override {
    CheckShapes(kv, copies);
    reference::CopyBlocks(kv, copies);
  }

 private:
  const Capabilities capabilities_ = MakeCapabilities();
  const std::unique_ptr<Device> device_ = MakeHostDevice();
};

}  // namespace

std::unique_ptr<Ops> MakeReferenceOps() { return std::make_unique<ReferenceOps>(); }

}  // namespace pagoda::kernels
