#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/model.h"
#include "tests/fixtures/tiny_model.h"

namespace pagoda::model {

// TINY loaded with a KV pool, driven one call at a time. The pool starts as NaNs (test builds), so
// nothing that was not written can pass unnoticed.
struct TinyRun {
  static constexpr std::int32_t kBlockSize = 4;
  static constexpr std::int32_t kNumBlocks = 256;

  struct Kind {
    std::string activation = "f32";
    std::string kv = "f32";
    std::string ops = "auto";
    int num_threads = 1;
    fixtures::TinyOptions tiny = {};
    std::string device = "cpu";
  };

  explicit TinyRun(const Kind& kind) {
    const std::string path = fixtures::TemporaryPath("tiny_run.gguf");
    EXPECT_TRUE(fixtures::WriteTinyGguf(path, kind.tiny).ok());
    ModelOptions options;
    options.device = kind.device;
    options.activation_dtype = kind.activation;
    options.kv_cache_dtype = kind.kv;
    options.ops = kind.ops;
    options.num_threads = kind.num_threads;
    options.block_size = kBlockSize;
    options.max_num_batched_tokens = 160;
    options.max_num_seqs = 16;
    auto loaded = Model::Load(path, options);
    // The model keeps its mapping; the next run may have this name.
    std::filesystem::remove(path);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    model = *std::move(loaded);
    EXPECT_TRUE(model->AllocateKv(kNumBlocks).ok());
  }

  std::unique_ptr<Model> model;
};

// A sequence and the blocks it was given, in an order that is not theirs in the pool.
struct TinySequence {
  std::vector<base::TokenId> tokens;
  std::vector<std::uint32_t> blocks;
};

// Sequence `index` of `length` tokens. The sequences of one run own disjoint blocks, dealt out
// backwards and interleaved.
inline TinySequence MakeSequence(std::uint32_t index, std::size_t length) {
  TinySequence sequence;
  for (std::size_t i = 0; i < length; ++i) {
    const auto place = static_cast<std::uint32_t>(i);
    sequence.tokens.push_back((place * place * 31 + place * 7 + index * 101) %
                              fixtures::kTinyTokens);
  }
  constexpr std::uint32_t kStride = 5;
  for (std::size_t i = 0; i * TinyRun::kBlockSize < length; ++i) {
    const auto place = static_cast<std::uint32_t>(i);
    sequence.blocks.push_back(TinyRun::kNumBlocks - 1 - index - kStride * place);
  }
  return sequence;
}

// One share of a step: tokens [first, first + count) of the sequence; the first num_without_kv are
// computed, not stored.
struct Share {
  const TinySequence* sequence = nullptr;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t num_without_kv = 0;
};

using LogitRows = std::vector<std::vector<float>>;

// Runs one step and returns the logits of the last row of each share.
inline LogitRows RunStep(Model& model, const std::vector<Share>& shares) {
  std::vector<base::TokenId> tokens;
  std::vector<SequenceInput> inputs;
  for (const Share& share : shares) {
    inputs.push_back({.slot = base::SlotId{static_cast<std::uint32_t>(inputs.size())},
                      .first_row = static_cast<std::int32_t>(tokens.size()),
                      .num_tokens = share.count,
                      .first_position = share.first,
                      .num_without_kv = share.num_without_kv,
                      .block_tables = {share.sequence->blocks}});
    tokens.insert(tokens.end(), share.sequence->tokens.begin() + share.first,
                  share.sequence->tokens.begin() + share.first + share.count);
  }
  std::vector<std::int32_t> rows;
  for (const SequenceInput& input : inputs) rows.push_back(input.first_row + input.num_tokens - 1);
  EXPECT_TRUE(model.Forward({.tokens = tokens, .sequences = inputs, .logit_rows = rows}).ok());
  LogitRows logits;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = model.Logits(static_cast<std::int32_t>(i));
    logits.emplace_back(row.begin(), row.end());
  }
  return logits;
}

// The logits after the last token, computed alone and in one piece.
inline std::vector<float> Alone(Model& model, const TinySequence& sequence) {
  const auto length = static_cast<std::int32_t>(sequence.tokens.size());
  return RunStep(model, {{&sequence, 0, length}})[0];
}

}  // namespace pagoda::model
