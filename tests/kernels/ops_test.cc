#include "kernels/ops.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/reference_ops.h"

namespace pagoda::kernels {
namespace {

// Writes down which primitives a composite op calls.
class RecordingOps : public Ops {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }
  Device& device() override { return *device_; }
  void Embed(const EmbedParams&, Stream) override { calls.push_back("embed"); }
  void RmsNorm(const RmsNormParams&, Stream) override { calls.push_back("norm"); }
  void Add(const AddParams&, Stream) override { calls.push_back("add"); }
  void Matmul(const MatmulParams&, Stream) override { calls.push_back("matmul"); }
  void Rope(const RopeParams&, Stream) override { calls.push_back("rope"); }
  void WriteKv(const WriteKvParams&, Stream) override { calls.push_back("write"); }
  void Attention(const AttentionParams&, Stream) override { calls.push_back("attention"); }
  void SiluMul(const SiluMulParams&, Stream) override { calls.push_back("silu"); }
  void Sample(const SampleParams&, Stream) override { calls.push_back("sample"); }
  void Score(const ScoreParams&, Stream) override { calls.push_back("score"); }
  void ZeroBlocks(const KvView&, std::span<const std::uint32_t>, Stream) override {
    calls.push_back("zero");
  }
  void CopyBlocks(const KvView&, std::span<const BlockCopy>, Stream) override {
    calls.push_back("copy");
  }

  std::vector<std::string> calls;

 private:
  Capabilities capabilities_;
  std::unique_ptr<Device> device_ = MakeHostDevice();
};

using Calls = std::vector<std::string>;

TEST(Ops, CompositeOpsAreTheirPrimitivesInOrder) {
  RecordingOps ops;
  ops.NormMatmul({}, {});
  EXPECT_EQ(ops.calls, (Calls{"norm", "matmul"}));
  ops.calls.clear();
  ops.GateUp({.norm = RmsNormParams{}, .gate_up = {}, .out = {}}, {});
  EXPECT_EQ(ops.calls, (Calls{"norm", "matmul", "silu"}));
  ops.calls.clear();
  ops.GateUp({.norm = std::nullopt, .gate_up = {}, .out = {}}, {});
  EXPECT_EQ(ops.calls, (Calls{"matmul", "silu"}));
  ops.calls.clear();
  ops.RopeAndWriteKv({}, {});
  EXPECT_EQ(ops.calls, (Calls{"rope", "write"}));
}

TEST(Ops, AllReduceOverOneShardLeavesTheValues) {
  RecordingOps ops;
  std::vector<float> data = {1.0f, 2.0f};
  ops.AllReduce({data.data(), 1, 2, 2}, {});
  EXPECT_EQ(data, (std::vector<float>{1.0f, 2.0f}));
  EXPECT_TRUE(ops.calls.empty());
}

}  // namespace
}  // namespace pagoda::kernels
