#pragma once

// Attention over one sequence in scrambled blocks: the prefill kernel in pieces and as a whole, the
// decode kernel, and the textbook in double. Standard library only.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/decode.cuh"
#include "tests/gpu/conformance_outcome.cuh"

namespace pagoda::gpu_check {

// kColumns: of the decode kernel, at least `group`.
template <typename Machine, int kHeadSize, int kColumns>
class AttentionCheck {
 public:
  AttentionCheck(Machine& machine, int group, int block_shift)
      : machine_(machine), group_(group), block_shift_(block_shift) {
    const std::int64_t elements = std::int64_t{NumBlocks()} * 2 * BlockElements();
    pool_ = Allocate<std::uint16_t>(elements);
    FillBf16(pool_, elements, random_);
    query_ = Allocate<float>(std::int64_t{kMaxLength} * Columns());
    FillNormal(query_, std::int64_t{kMaxLength} * Columns(), random_);
    for (std::int64_t i = 0; i < std::int64_t{kMaxLength} * Columns(); ++i) {
      query_[i] = base::FloatFromBf16(base::Bf16FromFloat(query_[i]));
    }
    table_ = Allocate<std::uint32_t>(NumBlocks());
    // Block 0 is nobody's.
    for (int i = 0; i + 1 < NumBlocks(); ++i) {
      table_[i] = static_cast<std::uint32_t>(i * 7 % (NumBlocks() - 1) + 1);
    }
    item_ = Allocate<cuda::AttentionItem>(1);
    tiles_ = Allocate<cuda::AttentionTile>(kMaxRows * 16);
    slices_ = Allocate<cuda::DecodeSlice>(kMaxSlices);
    shares_ = Allocate<cuda::DecodeShare>(kMaxSlices);
    row_ = Allocate<cuda::DecodeRow>(1);
    partial_out_ = Allocate<float>(std::int64_t{kMaxSlices} * Columns());
    partial_sums_ = Allocate<float>(std::int64_t{kMaxSlices} * Heads() * 2);
    found_ = Allocate<float>(std::int64_t{kMaxRows} * Columns());
    wanted_ = Allocate<float>(std::int64_t{kMaxRows} * Columns());
  }

  Outcome Run() {
    Outcome outcome{"attention, head size " + std::to_string(kHeadSize) + ", group " +
                        std::to_string(group_) + ", blocks of " + std::to_string(BlockSize()) +
                        ": decode = prefill, pieces = whole, near double",
                    false, ""};
    outcome.detail = CompareDecode();
    if (outcome.detail.empty()) outcome.detail = ComparePieces();
    if (!outcome.detail.empty()) return outcome;
    // From both sides: bf16 weights do not come closer than this.
    outcome.passed = wrong_ == 0 && largest_ <= 3e-3 && largest_ >= 1e-4;
    outcome.detail = Count(wrong_, total_) + ", error " + std::to_string(largest_ * 1e6) + "e-6";
    return outcome;
  }

 private:
  static constexpr int kKvHeads = 2, kMaxLength = 600, kMaxRows = 40;
  static constexpr int kMaxSlices = (kMaxLength + cuda::kChunkTokens - 1) / cuda::kChunkTokens;

  int Heads() const { return group_ * kKvHeads; }
  int Columns() const { return Heads() * kHeadSize; }
  int BlockSize() const { return 1 << block_shift_; }
  // A number that 7 does not divide, so that the table is a permutation.
  int NumBlocks() const {
    const int blocks = kMaxLength / BlockSize() + 2;
    return (blocks - 1) % 7 == 0 ? blocks + 1 : blocks;
  }
  int BlockElements() const { return kKvHeads * BlockSize() * kHeadSize; }
  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(kHeadSize)); }
  template <typename T>
  T* Allocate(std::int64_t count) {
    return machine_.template Allocate<T>(static_cast<std::size_t>(count));
  }

  cuda::KvArguments Kv() const {
    const cuda::KvPlaneArguments key = {.base = reinterpret_cast<unsigned char*>(pool_),
                                        .block_stride = std::int64_t{4} * BlockElements(),
                                        .layer_stride = 0,
                                        .head_stride = std::int64_t{2} * BlockSize() * kHeadSize,
                                        .token_stride = 2 * kHeadSize};
    cuda::KvPlaneArguments value = key;
    value.base += 2 * BlockElements();
    return {.key = key, .value = value, .block_shift = block_shift_};
  }

  // Single rows where a context ends just before, at and just after a block, a tile, a chunk.
  std::string CompareDecode() {
    const int edges[] = {1,   2,   3,   BlockSize() - 1, BlockSize(), BlockSize() + 1, 63, 64, 65,
                         255, 256, 257, kMaxLength};
    for (const int length : edges) {
      if (std::string error = Prefill(length - 1, 1, wanted_); !error.empty()) return error;
      if (std::string error = Decode(length); !error.empty()) return error;
      Compare(found_, 1);
      largest_ = std::max(largest_, Error(length, wanted_));
    }
    return "";
  }

  // From the first token on, and over the end of a chunk.
  std::string ComparePieces() {
    for (const int first : {0, 220}) {
      if (std::string error = Prefill(first, kMaxRows, wanted_); !error.empty()) return error;
      for (const int piece : {1, 7, 33}) {
        for (int at = 0; at < kMaxRows; at += piece) {
          const int count = std::min(piece, kMaxRows - at);
          std::string error = Prefill(first + at, count, found_ + std::int64_t{at} * Columns());
          if (!error.empty()) return error;
        }
        Compare(found_, kMaxRows);
      }
      for (const int row : {0, 1, 17, 35, 36, kMaxRows - 1}) {
        largest_ =
            std::max(largest_, Error(first + row + 1, wanted_ + std::int64_t{row} * Columns()));
      }
    }
    return "";
  }

  void Compare(const float* found, int rows) {
    for (std::int64_t i = 0; i < std::int64_t{rows} * Columns(); ++i) {
      wrong_ += !SameBits(found[i], wanted_[i]);
    }
    total_ += std::int64_t{rows} * Columns();
  }

  std::string Prefill(int first, int count, float* out) {
    constexpr cuda::AttentionShape kShape = cuda::AttentionShapeOf(kHeadSize);
    const int num_tiles = base::DivUp(count * group_, kShape.rows);
    item_[0] = {.first_row = 0, .num_tokens = count, .first_position = first};
    for (int i = 0; i < num_tiles; ++i) {
      tiles_[i] = {.item = 0, .first_packed_row = i * kShape.rows};
    }
    cuda::AttentionArguments arguments = {
        .query = {query_ + std::int64_t{first} * Columns(), Columns()},
        .out = {out, Columns()},
        .kv = Kv()};
    arguments.tiles = tiles_;
    arguments.items = item_;
    arguments.block_table = table_;
    arguments.group = group_;
    arguments.scale = Scale();
    return machine_.template Launch<&cuda::Attention<kHeadSize>>(
        {static_cast<unsigned>(num_tiles), kKvHeads}, kShape.NumThreads(), kShape.SharedBytes(),
        arguments);
  }

  std::string Decode(int length) {
    constexpr cuda::DecodeShape kShape = cuda::DecodeShapeOf(kHeadSize, kColumns);
    const int num_slices = base::DivUp(length, cuda::kChunkTokens);
    for (int i = 0; i < num_slices; ++i) {
      const int first = i * cuda::kChunkTokens;
      slices_[i] = {.first = first, .end = std::min(first + cuda::kChunkTokens, length)};
      shares_[i] = {.first_slice = i, .num_slices = 1};
    }
    row_[0] = {.row = 0, .first_slice = 0, .num_slices = num_slices};
    cuda::DecodeArguments decode = {
        .query = {query_ + std::int64_t{length - 1} * Columns(), Columns()}, .kv = Kv()};
    decode.shares = shares_;
    decode.slices = slices_;
    decode.block_table = table_;
    decode.partial_out = partial_out_;
    decode.partial_sums = partial_sums_;
    decode.group = group_;
    decode.num_query_heads = Heads();
    decode.scale = Scale();
    std::string error = machine_.template Launch<&cuda::Decode<kHeadSize, kColumns>>(
        {static_cast<unsigned>(num_slices), kKvHeads}, cuda::DecodeShape::kThreads,
        kShape.SharedBytes(), decode);
    if (!error.empty()) return error;
    cuda::MergeArguments merge = {.out = {found_, Columns()}, .rows = row_};
    merge.partial_out = partial_out_;
    merge.partial_sums = partial_sums_;
    merge.num_query_heads = Heads();
    merge.head_size = kHeadSize;
    return machine_.template Launch<&cuda::MergeDecode>({1, static_cast<unsigned>(Heads())},
                                                        cuda::kElementThreads, 0, merge);
  }

  double Stored(int position, int kv_head, int d, bool is_value) const {
    const std::int64_t block = table_[position >> block_shift_];
    const int token = position & (BlockSize() - 1);
    return base::FloatFromBf16(
        pool_[block * 2 * BlockElements() + (is_value ? BlockElements() : 0) +
              (kv_head * BlockSize() + token) * kHeadSize + d]);
  }

  // Of the first and the last head of the row that sees `length` tokens: the length of the
  // difference over the length of what it should be.
  double Error(int length, const float* out) const {
    const float* const query = query_ + std::int64_t{length - 1} * Columns();
    double difference = 0, size = 0;
    for (const int h : {0, Heads() - 1}) {
      std::vector<double> weights;
      double total = 0;
      for (int at = 0; at < length; ++at) {
        double dot = 0;
        for (int d = 0; d < kHeadSize; ++d) {
          dot += query[h * kHeadSize + d] * Stored(at, h / group_, d, false);
        }
        weights.push_back(std::exp(dot * Scale()));
        total += weights.back();
      }
      for (int d = 0; d < kHeadSize; ++d) {
        double exact = 0;
        for (int at = 0; at < length; ++at) {
          exact += weights[static_cast<std::size_t>(at)] / total * Stored(at, h / group_, d, true);
        }
        const double error = out[h * kHeadSize + d] - exact;
        difference += error * error;
        size += exact * exact;
      }
    }
    return std::sqrt(difference / size);
  }

  Machine& machine_;
  const int group_, block_shift_;
  std::mt19937 random_{4};
  std::uint16_t* pool_;
  float* query_;
  std::uint32_t* table_;
  cuda::AttentionItem* item_;
  cuda::AttentionTile* tiles_;
  cuda::DecodeSlice* slices_;
  cuda::DecodeShare* shares_;
  cuda::DecodeRow* row_;
  float *partial_out_, *partial_sums_, *found_, *wanted_;
  std::int64_t wrong_ = 0, total_ = 0;
  double largest_ = 0;
};

// Every instance of both kernels, and blocks of 4 to 64 tokens.
template <typename Machine, typename Report>
void RunAttentionChecks(Machine& machine, const Report& report) {
  report(AttentionCheck<Machine, 64, 8>(machine, 3, 4).Run());
  report(AttentionCheck<Machine, 128, 8>(machine, 4, 4).Run());
  report(AttentionCheck<Machine, 32, 8>(machine, 8, 2).Run());
  report(AttentionCheck<Machine, 96, 8>(machine, 1, 3).Run());
  report(AttentionCheck<Machine, 256, 8>(machine, 2, 5).Run());
  report(AttentionCheck<Machine, 32, 16>(machine, 9, 6).Run());
  report(AttentionCheck<Machine, 64, 16>(machine, 16, 3).Run());
  report(AttentionCheck<Machine, 96, 16>(machine, 12, 2).Run());
  report(AttentionCheck<Machine, 128, 16>(machine, 10, 6).Run());
  report(AttentionCheck<Machine, 256, 16>(machine, 12, 4).Run());
}

}  // namespace pagoda::gpu_check
