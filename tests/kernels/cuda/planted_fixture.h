#pragma once

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/mutation.cuh"
#include "tests/kernels/cuda/cuda_fixture.h"

namespace pagoda::kernels::cuda {

using Bytes = std::vector<std::byte>;

// A race, and a schedule under which its outcome is the sound one.
struct SilentRace {
  Mutation mutation;
  Schedule schedule;
};
inline std::vector<SilentRace> SilentRaces() {
  std::vector<SilentRace> races;
  for (const Schedule& schedule : HostileSchedules()) {
    // Writes of the same values, whatever the order.
    races.push_back({Mutation::kAttentionTwoThreadsLoadEachPair, schedule});
    races.push_back({Mutation::kDecodeEveryRowStoresItsSum, schedule});
    if (schedule.copies != CopyTime::kEarly) continue;
    // A barrier and two waits left out, for copies that had arrived long before.
    races.push_back({Mutation::kGemmNoBarrierInTheLastStep, schedule});
    races.push_back({Mutation::kGemmWaitsTooLittle, schedule});
    races.push_back({Mutation::kAttentionWaitsTooLittle, schedule});
  }
  for (SilentRace& race : races) {
    race.schedule.planted_fault = static_cast<std::uint8_t>(race.mutation);
  }
  return races;
}

// Runs of every kind of kernel on small shapes, with or without a planted fault.
class PlantedFaultTest : public CudaTest {
 protected:
  PlantedFaultTest() : inputs_device_(device_) { BuildInputs(); }

  // Everything that a run writes, or nothing if it ended in an error.
  Bytes Outcome(const Schedule& schedule);

 private:
  void BuildInputs();
  void RunAttention(KvPool& pool, Bytes& all);
  void RunProducts(Bytes& all);
  void RunRows(Bytes& all);
  void RunElements(Bytes& all);
  void RunDraws(Bytes& all);
  void Keep(const Matrix& matrix, Bytes& all) {
    const auto bytes = std::as_bytes(std::span(matrix.data));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }

  static constexpr std::int32_t kLength = 560;
  EmulatedDevice* const inputs_device_;
  std::mt19937 random_{51};
  Matrix key_ = RandomMatrix(kLength, 128, random_);
  Matrix value_ = RandomMatrix(kLength, 128, random_);
  Matrix query_ = RandomMatrix(kLength, 384, random_, 2.0f);
  Matrix x_ = RandomMatrix(70, 480, random_);
  Matrix small_ = RandomMatrix(5, 64, random_, 1e-2f);
  Matrix angles_ = RandomMatrix(64, 32, random_);
  std::vector<std::uint32_t> table_;
  std::unique_ptr<OwnedWeight> weight_, embedding_;
  std::unique_ptr<KvPool> pool_;
};

inline void PlantedFaultTest::BuildInputs() {
  weight_ = std::make_unique<OwnedWeight>(
      std::vector<SourceWeight>{RandomWeight(ElementType::kBf16, 130, 480, random_)},
      WeightRole::kDown, ActivationType::kBf16, *ops_);
  embedding_ = std::make_unique<OwnedWeight>(
      std::vector<SourceWeight>{RandomWeight(ElementType::kBf16, 40, 96, random_)},
      WeightRole::kEmbedding, ActivationType::kBf16, *ops_);
  pool_ = std::make_unique<KvPool>(PoolShape{
      .num_heads = 2, .head_size = 64, .block_size = 16, .num_blocks = 40, .num_layers = 2});
  table_ = ScrambledBlocks(40, random_);
  table_.resize(35);
  const auto slots = SlotsOf(table_, 16, 0, kLength);
  reference_->WriteKv({key_.view(), value_.view(), &pool_->view(), 1, slots}, {});
}

inline void PlantedFaultTest::RunAttention(KvPool& pool, Bytes& all) {
  Matrix out(80, 384), continued(2, 384), decoded(2, 384);
  const Matrix query = RowsOf(query_, 250, 80), last = RowsOf(query_, 558, 2);
  const AttentionWork prefill = {
      .first_row = 0, .num_tokens = 80, .first_position = 250, .block_table = table_};
  // The same rows by the prefill and by the decode kernel.
  const AttentionWork chunk = {
      .first_row = 0, .num_tokens = 2, .first_position = 558, .block_table = table_};
  const AttentionWork decode[] = {
      {.first_row = 0, .num_tokens = 1, .first_position = 558, .block_table = table_},
      {.first_row = 1, .num_tokens = 1, .first_position = 559, .block_table = table_}};
  AttentionParams params = {.query = query.view(),
                            .out = out.view(),
                            .kv = &pool.view(),
                            .layer = 1,
                            .num_query_heads = 6,
                            .scale = 0.125f,
                            .work = {&prefill, 1}};
  ops_->Attention(params, stream_);
  AttentionParams alone = params;
  alone.query = last.view();
  alone.out = continued.view();
  alone.work = {&chunk, 1};
  ops_->Attention(alone, stream_);
  alone.out = decoded.view();
  alone.work = decode;
  ops_->Attention(alone, stream_);
  if (!device_->Await(device_->Record(stream_)).ok()) return;
  Keep(out, all);
  Keep(continued, all);
  Keep(decoded, all);
}

inline void PlantedFaultTest::RunProducts(Bytes& all) {
  for (const std::int64_t rows : {5, 70}) {
    const Matrix x = RowsOf(x_, 0, rows);
    // A row more, so that a write past the last one lands in our memory.
    Matrix out(rows + 1, 130);
    for (std::int64_t m = 0; m < rows; ++m) {
      for (std::int64_t n = 0; n < 130; ++n) out.at(m, n) = 1.0f;
    }
    ops_->Matmul({.x = x.view(),
                  .weight = weight_->get(),
                  .out = out.view().Rows(0, rows),
                  .output = rows == 5 ? MatmulOutput::kStore : MatmulOutput::kAdd,
                  .row_adapters = {}},
                 stream_);
    if (!device_->Await(device_->Record(stream_)).ok()) return;
    Keep(out, all);
  }
}

inline void PlantedFaultTest::RunRows(Bytes& all) {
  KvPool pool({.num_heads = 1, .head_size = 64, .block_size = 16, .num_blocks = 8});
  for (std::size_t i = 0; i < pool.bytes().size(); ++i) {
    pool.bytes()[i] = static_cast<std::byte>(i * 7 + i / 300);
  }
  Matrix normed(5, 64), query = small_, key = small_;
  const std::vector<float> ones(64, 1.0f);
  const std::vector<std::int32_t> positions = {3, 0, 63, 7, 9};
  const std::vector<std::int64_t> slots = {17, 40, -1, 99, 20};
  const std::vector<std::uint32_t> zeroed = {5};
  const BlockCopy copy = {.source = 1, .target = 7, .num_slots = 5};
  ops_->RmsNorm({small_.view(), ones, 1e-5f, normed.view()}, stream_);
  ops_->RopeAndWriteKv({{query.view(), key.view(), 64, 64, RopePairs::kHalves, angles_.view(),
                         angles_.view(), positions},
                        {key.view(), small_.view(), &pool.view(), 1, slots}},
                       stream_);
  ops_->ZeroBlocks(pool.view(), zeroed, stream_);
  ops_->CopyBlocks(pool.view(), {&copy, 1}, stream_);
  if (!device_->Await(device_->Record(stream_)).ok()) return;
  Keep(normed, all);
  Keep(query, all);
  all.insert(all.end(), pool.bytes().begin(), pool.bytes().end());
}

inline void PlantedFaultTest::RunElements(Bytes& all) {
  const std::vector<base::TokenId> tokens = {3, 17, 39};
  std::mt19937 random(52);
  Matrix rows(3, 96), sums = RandomMatrix(3, 96, random), products(3, 48);
  ops_->Embed({embedding_->get(), tokens, rows.view()}, stream_);
  ops_->Add({rows.view(), sums.view()}, stream_);
  ops_->SiluMul({sums.view(), products.view()}, stream_);
  if (!device_->Await(device_->Record(stream_)).ok()) return;
  Keep(rows, all);
  Keep(sums, all);
  Keep(products, all);
}

// Of ties, so that one token kept too many is drawn before long.
inline void PlantedFaultTest::RunDraws(Bytes& all) {
  const std::vector<float> flat(200, 1.0f);
  std::vector<SampleRow> rows;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    rows.push_back({.logits = flat, .top_k = 2, .seed = seed});
    rows.push_back({.logits = flat, .top_p = 0.01f, .seed = seed});
    rows.push_back({.logits = flat, .seed = seed});
  }
  std::vector<SampleOutcome> outcomes(rows.size());
  ops_->Sample({rows, outcomes}, stream_);
  if (!device_->Await(device_->Record(stream_)).ok()) return;
  for (const SampleOutcome& outcome : outcomes) {
    for (int shift = 0; shift < 32; shift += 8) {
      all.push_back(static_cast<std::byte>(outcome.token >> shift & 255));
    }
  }
}

inline Bytes PlantedFaultTest::Outcome(const Schedule& schedule) {
  inputs_device_->SetSchedule(schedule);  // it runs nothing: its memory is read by the other
  // A fault ends a device for good.
  auto device = emulation::MakeEmulatedDevice({.schedule = schedule});
  device_ = device.get();
  std::unique_ptr<Ops> kept =
      std::exchange(ops_, *MakeCudaOps(std::move(device), {.decode_ctas = 4}));
  Bytes all;
  RunRows(all);
  RunElements(all);
  RunDraws(all);
  RunProducts(all);
  RunAttention(*pool_, all);
  ops_ = std::move(kept);
  return all;
}

}  // namespace pagoda::kernels::cuda
