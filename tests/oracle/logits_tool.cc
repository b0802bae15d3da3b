// The logits of a model at given positions of given texts, for tests/oracle/check_gate_a.py.
//
//     logits_tool MODEL ACTIVATION_DTYPE KV_CACHE_DTYPE
//
// Standard input, little-endian, until it ends: u32 count, u32 ids; u32 count, u32 positions.
// Standard output: per position the row, f32 each.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "model/model.h"

namespace pagoda::model {
namespace {

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kMaxTokens = 2048;
constexpr std::int32_t kChunkTokens = 256;

std::optional<std::vector<std::uint32_t>> ReadNumbers() {
  std::uint32_t count = 0;
  if (std::fread(&count, sizeof(count), 1, stdin) != 1) return std::nullopt;
  PAGODA_CHECK(count <= kMaxTokens);
  std::vector<std::uint32_t> numbers(count);
  PAGODA_CHECK(std::fread(numbers.data(), sizeof(std::uint32_t), count, stdin) == count);
  return numbers;
}

void WriteRows(Model& model, std::span<const base::TokenId> ids,
               std::span<const std::uint32_t> positions) {
  std::vector<std::uint32_t> blocks(kMaxTokens / kBlockSize);
  std::iota(blocks.begin(), blocks.end(), 1U);
  for (std::int32_t first = 0; first < std::ssize(ids); first += kChunkTokens) {
    const auto count =
        std::min<std::int32_t>(kChunkTokens, static_cast<std::int32_t>(std::ssize(ids)) - first);
    const SequenceInput sequence{.slot = base::SlotId(0),
                                 .first_row = 0,
                                 .num_tokens = count,
                                 .first_position = first,
                                 .block_tables = {blocks}};
    std::vector<std::int32_t> rows;
    for (const std::uint32_t position : positions) {
      const std::int32_t row = static_cast<std::int32_t>(position) - first;
      if (row >= 0 && row < count) rows.push_back(row);
    }
    const absl::Status done = model.Forward({.tokens = ids.subspan(first, count),
                                             .sequences = std::span(&sequence, 1),
                                             .logit_rows = rows});
    PAGODA_CHECK_MSG(done.ok(), done.ToString());
    for (std::int32_t row = 0; row < std::ssize(rows); ++row) {
      const std::span<float> logits = model.Logits(row).first(model.info().vocabulary_size);
      std::fwrite(logits.data(), sizeof(float), logits.size(), stdout);
    }
  }
}

int Main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: logits_tool MODEL ACTIVATION_DTYPE KV_CACHE_DTYPE\n");
    return 2;
  }
  const auto model = Model::Load(argv[1], {.activation_dtype = argv[2],
                                           .kv_cache_dtype = argv[3],
                                           .block_size = kBlockSize,
                                           .max_num_batched_tokens = kChunkTokens,
                                           .max_num_seqs = kChunkTokens,
                                           .max_model_len = kMaxTokens});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  const absl::Status allocated = (*model)->AllocateKv(1 + kMaxTokens / kBlockSize);
  PAGODA_CHECK_MSG(allocated.ok(), allocated.ToString());
  while (const auto ids = ReadNumbers()) {
    const auto positions = ReadNumbers();
    PAGODA_CHECK(positions.has_value());
    WriteRows(**model, *ids, *positions);
  }
  return 0;
}

}  // namespace
}  // namespace pagoda::model

int main(int argc, char** argv) { return pagoda::model::Main(argc, argv); }
