#pragma once

// The kernels that treat rows and blocks of the pool, each beside a plain loop of the host that has
// to give the same bits. Standard library only.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/exact_math.h"
#include "kernels/cuda/kv_kernels.cuh"
#include "kernels/cuda/row_kernels.cuh"
#include "tests/gpu/conformance_outcome.cuh"

namespace pagoda::gpu_check {

// Rows and columns that fill no whole CTA; rows lie apart by `kStride`.
inline constexpr int kRowCount = 7, kRowColumns = 700, kStride = 712;

inline unsigned RowPieces(int columns) {
  return static_cast<unsigned>(
      base::DivUp(columns, cuda::kElementThreads * cuda::kElementsPerThread));
}

// Words in which two runs of memory differ.
template <typename Word>
std::int64_t Differing(const Word* found, const Word* wanted, std::int64_t count) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    wrong += std::memcmp(found + i, wanted + i, sizeof(Word)) == 0 ? 0 : 1;
  }
  return wrong;
}

template <typename Machine>
Outcome CheckEmbed(Machine& machine) {
  constexpr int kVocabulary = 40;
  std::mt19937 random(5);
  auto* const table = machine.template Allocate<std::uint16_t>(kVocabulary * kRowColumns);
  FillBf16(table, kVocabulary * kRowColumns, random);
  auto* const tokens = machine.template Allocate<std::uint32_t>(kRowCount);
  for (int t = 0; t < kRowCount; ++t)
    tokens[t] = static_cast<std::uint32_t>(random() % kVocabulary);
  float* const out = machine.template Allocate<float>(kRowCount * kStride);
  const cuda::EmbedArguments arguments = {table, tokens, {out, kStride}, kRowColumns};
  Outcome outcome{"Embed", false, ""};
  outcome.detail = machine.template Launch<&cuda::Embed>({kRowCount, RowPieces(kRowColumns)},
                                                         cuda::kElementThreads, 0, arguments);
  if (!outcome.detail.empty()) return outcome;
  std::vector<float> wanted(kRowCount * kStride, 0.0f);
  for (int t = 0; t < kRowCount; ++t) {
    for (int k = 0; k < kRowColumns; ++k) {
      const std::uint32_t bits = std::uint32_t{table[tokens[t] * kRowColumns + k]} << 16;
      wanted[static_cast<std::size_t>(t * kStride + k)] = std::bit_cast<float>(bits);
    }
  }
  const std::int64_t wrong = Differing(out, wanted.data(), kRowCount * kStride);
  return {outcome.name, wrong == 0, Count(wrong, kRowCount * kStride)};
}

// The sum of squares as README says: 32 sums with a stride of 32, then pairs, halving.
inline float InverseNorm(const float* row, int columns, float epsilon) {
  float sums[32] = {};
  for (int k = 0; k < columns; ++k) sums[k % 32] = std::fma(row[k], row[k], sums[k % 32]);
  for (int half = 16; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) sums[lane] = sums[lane] + sums[lane + half];
  }
  return 1.0f / std::sqrt(sums[0] / static_cast<float>(columns) + epsilon);
}

template <typename Machine>
Outcome CheckRmsNorm(Machine& machine) {
  constexpr float kEpsilon = 1e-5f;
  std::mt19937 random(6);
  float* const in = machine.template Allocate<float>(kRowCount * kStride);
  float* const weight = machine.template Allocate<float>(kRowColumns);
  FillNormal(in, kRowCount * kStride, random);
  FillNormal(weight, kRowColumns, random);
  // One row so small that epsilon decides.
  for (int k = 0; k < kRowColumns; ++k) in[3 * kStride + k] *= 1e-3f;
  float* const out = machine.template Allocate<float>(kRowCount * kStride);
  auto* const rounded = machine.template Allocate<std::uint16_t>(kRowCount * kStride);
  cuda::RmsNormArguments arguments = {{in, kStride}, weight, {out, kStride}, {rounded, kStride}};
  arguments.rows = kRowCount;
  arguments.columns = kRowColumns;
  arguments.epsilon = kEpsilon;
  Outcome outcome{"RmsNorm", false, ""};
  outcome.detail = machine.template Launch<&cuda::RmsNorm>(
      {static_cast<unsigned>(base::DivUp(kRowCount, cuda::kNormRowsPerCta))}, cuda::kElementThreads,
      0, arguments);
  if (!outcome.detail.empty()) return outcome;
  std::int64_t wrong = 0;
  for (int t = 0; t < kRowCount; ++t) {
    const float inverse = InverseNorm(in + t * kStride, kRowColumns, kEpsilon);
    for (int k = 0; k < kStride; ++k) {
      const int at = t * kStride + k;
      const float wanted = k < kRowColumns ? in[at] * inverse * weight[k] : 0.0f;
      wrong += !SameBits(out[at], wanted) || rounded[at] != base::Bf16FromFloat(wanted);
    }
  }
  return {outcome.name, wrong == 0, Count(wrong, kRowCount * kStride)};
}

template <typename Machine>
Outcome CheckElements(Machine& machine) {
  std::mt19937 random(7);
  float* const in = machine.template Allocate<float>(kRowCount * 2 * kStride);
  float* const sums = machine.template Allocate<float>(kRowCount * kStride);
  FillNormal(in, kRowCount * 2 * kStride, random);
  for (int i = 0; i < kRowCount * 2 * kStride; i += 3) in[i] *= 40.0f;
  FillNormal(sums, kRowCount * kStride, random);
  std::vector<float> wanted(sums, sums + kRowCount * kStride);
  float* const products = machine.template Allocate<float>(kRowCount * kStride);
  auto* const rounded = machine.template Allocate<std::uint16_t>(kRowCount * kStride);
  const Grid grid = {kRowCount, RowPieces(kRowColumns)};
  const cuda::ConstFloatRows rows = {in, 2 * kStride};
  Outcome outcome{"Add, RoundRows, SiluMul", false, ""};
  outcome.detail = machine.template Launch<&cuda::Add>(
      grid, cuda::kElementThreads, 0, cuda::AddArguments{rows, {sums, kStride}, kRowColumns});
  if (!outcome.detail.empty()) return outcome;
  outcome.detail = machine.template Launch<&cuda::RoundRows>(
      grid, cuda::kElementThreads, 0,
      cuda::RoundRowsArguments{rows, {rounded, kStride}, kRowColumns});
  if (!outcome.detail.empty()) return outcome;
  outcome.detail = machine.template Launch<&cuda::SiluMul>(
      grid, cuda::kElementThreads, 0,
      cuda::SiluMulArguments{rows, {products, kStride}, kRowColumns});
  if (!outcome.detail.empty()) return outcome;
  std::int64_t wrong = 0;
  for (int t = 0; t < kRowCount; ++t) {
    const float* const row = in + t * 2 * kStride;
    for (int k = 0; k < kStride; ++k) {
      const int at = t * kStride + k;
      const bool inside = k < kRowColumns;
      const float sum = wanted[static_cast<std::size_t>(at)] + (inside ? row[k] : 0.0f);
      const float gated = row[k] / (1.0f + base::Exp(-row[k])) * row[kRowColumns + k];
      wrong += !SameBits(sums[at], sum);
      wrong += rounded[at] != (inside ? base::Bf16FromFloat(row[k]) : 0);
      wrong += !SameBits(products[at], inside ? gated : 0.0f);
    }
  }
  return {outcome.name, wrong == 0, Count(wrong, 3 * kRowCount * kStride)};
}

// A pool of two layers and two heads in which every byte counts, and what the host expects of it.
template <typename Machine>
class PoolCheck {
 public:
  static constexpr int kLayers = 2, kKvHeads = 2, kHeads = 3, kHeadSize = 96, kRotary = 64;
  static constexpr int kBlockShift = 3, kBlockSize = 1 << kBlockShift, kNumBlocks = 9;
  static constexpr int kPlaneElements = kKvHeads * kBlockSize * kHeadSize;  // K of a layer
  static constexpr int kElements = kNumBlocks * kLayers * 2 * kPlaneElements;
  static constexpr int kRows = 5;

  explicit PoolCheck(Machine& machine) : machine_(machine) {
    pool_ = machine.template Allocate<std::uint16_t>(kElements);
    FillBf16(pool_, kElements, random_);
    wanted_.assign(pool_, pool_ + kElements);
  }

  Outcome RunBlocks() {
    auto* const blocks = machine_.template Allocate<std::uint32_t>(2);
    auto* const copies = machine_.template Allocate<cuda::BlockCopyArguments>(2);
    blocks[0] = 7;
    blocks[1] = 2;
    copies[0] = {3, 8, 5};
    copies[1] = {1, 4, kBlockSize};
    cuda::BlockArguments arguments = {.kv = Kv(), .blocks = blocks};
    arguments.copies = copies;
    arguments.num_kv_heads = kKvHeads;
    arguments.head_bytes = kHeadSize * 2;
    Outcome outcome{"ZeroBlocks, CopyBlocks", false, ""};
    outcome.detail = machine_.template Launch<&cuda::ZeroBlocks>(
        {2, kLayers, 2}, cuda::kElementThreads, 0, arguments);
    if (!outcome.detail.empty()) return outcome;
    outcome.detail = machine_.template Launch<&cuda::CopyBlocks>(
        {2, kLayers, 2}, cuda::kElementThreads, 0, arguments);
    if (!outcome.detail.empty()) return outcome;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int i = 0; i < 2 * kKvHeads * kBlockSize * kHeadSize; ++i) {
        const int token = i / kHeadSize % kBlockSize, head = i / kHeadSize / kBlockSize % kKvHeads;
        const bool is_value = i / kPlaneElements == 1;
        const auto at = [&](int block) -> std::uint16_t& {
          return wanted_[Place(block, layer, is_value, head, token) +
                         static_cast<std::size_t>(i % kHeadSize)];
        };
        at(7) = at(2) = 0;
        at(4) = at(1);
        if (token < 5) at(8) = at(3);
      }
    }
    return Compare(outcome.name, 0);
  }

  // Turned in place; stored; both at once. The second row has no slot: nothing of it is stored.
  template <bool kTurns, bool kStores>
  Outcome RunRope(bool interleaved) {
    Prepare();
    cuda::RopeArguments arguments = Arguments(interleaved);
    const std::vector<float> query(query_, query_ + kRows * kHeads * kHeadSize);
    const std::vector<float> key(key_, key_ + kRows * kKvHeads * kHeadSize);
    Outcome outcome{std::string(kTurns ? "Rope" : "") + (kTurns && kStores ? ", " : "") +
                        (kStores ? "WriteKv" : "") + (interleaved ? ", pairs interleaved" : ""),
                    false, ""};
    outcome.detail = machine_.template Launch<&cuda::Rope<kTurns, kStores>>(
        {kRows, kHeads + kKvHeads * (kStores ? 2u : 1u)}, cuda::kElementThreads, 0, arguments);
    if (!outcome.detail.empty()) return outcome;
    std::int64_t wrong = 0;
    for (int t = 0; t < kRows; ++t) {
      for (int h = 0; h < kHeads + kKvHeads; ++h) {
        const bool is_key = h >= kHeads;
        const int head = is_key ? h - kHeads : h;
        const int first = (t * (is_key ? kKvHeads : kHeads) + head) * kHeadSize;
        const float* const before = (is_key ? key.data() : query.data()) + first;
        const float* const after = (is_key ? key_ : query_) + first;
        const std::vector<float> turned = kTurns ? Turned(before, positions_[t], interleaved)
                                                 : std::vector<float>(before, before + kHeadSize);
        // A key that is stored is not turned in place.
        const float* const expected = is_key && kStores ? before : turned.data();
        wrong += Differing(after, expected, kHeadSize);
        if (is_key && kStores) Store(t, head, turned.data());
      }
    }
    return Compare(outcome.name, wrong);
  }

 private:
  static std::size_t Place(int block, int layer, bool is_value, int head, int token) {
    return static_cast<std::size_t>(((block * kLayers + layer) * 2 + (is_value ? 1 : 0)) *
                                        kPlaneElements +
                                    (head * kBlockSize + token) * kHeadSize);
  }
  cuda::KvArguments Kv() const {
    cuda::KvPlaneArguments key = {reinterpret_cast<unsigned char*>(pool_)};
    key.block_stride = std::int64_t{2} * kLayers * 2 * kPlaneElements;
    key.layer_stride = std::int64_t{2} * 2 * kPlaneElements;
    key.head_stride = std::int64_t{2} * kBlockSize * kHeadSize;
    key.token_stride = std::int64_t{2} * kHeadSize;
    cuda::KvPlaneArguments value = key;
    value.base += 2 * kPlaneElements;
    return {key, value, kBlockShift};
  }

  void Prepare() {
    constexpr int kPositions = 50;
    query_ = machine_.template Allocate<float>(kRows * kHeads * kHeadSize);
    key_ = machine_.template Allocate<float>(kRows * kKvHeads * kHeadSize);
    value_ = machine_.template Allocate<float>(kRows * kKvHeads * kHeadSize);
    cos_ = machine_.template Allocate<float>(kPositions * kRotary / 2);
    sin_ = machine_.template Allocate<float>(kPositions * kRotary / 2);
    positions_ = machine_.template Allocate<std::int32_t>(kRows);
    slots_ = machine_.template Allocate<std::int64_t>(kRows);
    FillNormal(query_, kRows * kHeads * kHeadSize, random_);
    FillNormal(key_, kRows * kKvHeads * kHeadSize, random_);
    FillNormal(value_, kRows * kKvHeads * kHeadSize, random_);
    FillNormal(cos_, kPositions * kRotary / 2, random_);
    FillNormal(sin_, kPositions * kRotary / 2, random_);
    for (int t = 0; t < kRows; ++t) {
      positions_[t] = static_cast<std::int32_t>(random_() % kPositions);
      slots_[t] = t == 1 ? -1 : 13 + t * 11;
    }
  }
  cuda::RopeArguments Arguments(bool interleaved) const {
    cuda::RopeArguments arguments;
    arguments.query = {query_, kHeads * kHeadSize};
    arguments.key = {key_, kKvHeads * kHeadSize};
    arguments.value = {value_, kKvHeads * kHeadSize};
    arguments.cos = {cos_, kRotary / 2};
    arguments.sin = {sin_, kRotary / 2};
    arguments.positions = positions_;
    arguments.slots = slots_;
    arguments.kv = Kv();
    arguments.num_query_heads = kHeads;
    arguments.num_kv_heads = kKvHeads;
    arguments.head_size = kHeadSize;
    arguments.rotary_size = kRotary;
    arguments.layer = 1;
    arguments.interleaved = interleaved;
    return arguments;
  }

  std::vector<float> Turned(const float* head, int position, bool interleaved) const {
    std::vector<float> turned(head, head + kHeadSize);
    for (int p = 0; p < kRotary / 2; ++p) {
      const auto a = static_cast<std::size_t>(interleaved ? 2 * p : p);
      const auto b = static_cast<std::size_t>(interleaved ? 2 * p + 1 : p + kRotary / 2);
      const float cosine = cos_[position * kRotary / 2 + p];
      const float sine = sin_[position * kRotary / 2 + p];
      turned[a] = std::fma(head[a], cosine, -(head[b] * sine));
      turned[b] = std::fma(head[b], cosine, head[a] * sine);
    }
    return turned;
  }
  void Store(int row, int head, const float* key) {
    if (slots_[row] < 0) return;
    const int block = static_cast<int>(slots_[row]) / kBlockSize;
    const int token = static_cast<int>(slots_[row]) % kBlockSize;
    for (int d = 0; d < kHeadSize; ++d) {
      const auto offset = static_cast<std::size_t>(d);
      wanted_[Place(block, 1, false, head, token) + offset] = base::Bf16FromFloat(key[d]);
      wanted_[Place(block, 1, true, head, token) + offset] =
          base::Bf16FromFloat(value_[(row * kKvHeads + head) * kHeadSize + d]);
    }
  }

  // The whole pool, so that what was written elsewhere shows too.
  Outcome Compare(const std::string& name, std::int64_t wrong) const {
    wrong += Differing(pool_, wanted_.data(), kElements);
    return {name, wrong == 0, Count(wrong, kElements)};
  }

  Machine& machine_;
  std::mt19937 random_{8};
  std::uint16_t* pool_;
  std::vector<std::uint16_t> wanted_;
  float *query_ = nullptr, *key_ = nullptr, *value_ = nullptr, *cos_ = nullptr, *sin_ = nullptr;
  std::int32_t* positions_ = nullptr;
  std::int64_t* slots_ = nullptr;
};

template <typename Machine, typename Report>
void RunRowChecks(Machine& machine, const Report& report) {
  report(CheckEmbed(machine));
  report(CheckRmsNorm(machine));
  report(CheckElements(machine));
  for (const bool interleaved : {false, true}) {
    report(PoolCheck<Machine>(machine).template RunRope<true, false>(interleaved));
    report(PoolCheck<Machine>(machine).template RunRope<true, true>(interleaved));
  }
  report(PoolCheck<Machine>(machine).template RunRope<false, true>(false));
  report(PoolCheck<Machine>(machine).RunBlocks());
}

}  // namespace pagoda::gpu_check
