#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lanes.h"

// Attention of some rows of one KV head over chunks of the paged context, in the order of
// kernels/README.md part 3. K and V of a tile are widened once into scratch, K turned so that a
// lane is a token, V so that a lane is a dim; then rows that see equally many tokens go through it
// together. How many rows share a tile is free.
namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS {
namespace {

constexpr int kTileTokens = 64;
constexpr int kSumLanes = 16;
constexpr int kRowBlock =
    3;  // times 4 registers of sums: 12, beside one of K or V and one of the row
constexpr int kVectorBlock = 4;

struct Tile {
  std::int64_t first_position;
  int num_tokens;
};

// Where things lie in the job's scratch. A row's state is o [D], 16 sum lanes, m; its total over
// chunks is O [D], L, M.
struct Scratch {
  explicit Scratch(const AttentionJob& job)
      : head_size(job.kv->head_size),
        keys(job.scratch),
        values(keys + kTileTokens * head_size),
        weights(values + kTileTokens * head_size),
        states(weights + 8 * kTileTokens),
        totals(states + job.num_tokens * job.group_size * StateFloats()) {}
  std::int64_t StateFloats() const { return head_size + kSumLanes + 2; }
  std::int64_t TotalFloats() const { return head_size + 2; }
  float* State(std::int64_t row) const { return states + row * StateFloats(); }
  float* Total(std::int64_t row) const { return totals + row * TotalFloats(); }

  std::int64_t head_size;
  float* keys;     // [D][64]
  float* values;   // [64][D]
  float* weights;  // [rows of a block][64]
  float* states;
  float* totals;
};

float* SumLanes(const Scratch& s, float* state) { return state + s.head_size; }
float& Maximum(const Scratch& s, float* state) { return state[s.head_size + kSumLanes]; }

float LoadElement(const std::byte* at, base::KvType type) {
  std::uint32_t bits = 0;
  if (type == base::KvType::kBf16) {
    std::uint16_t half;
    __builtin_memcpy(&half, at, sizeof(half));
    bits = static_cast<std::uint32_t>(half) << 16;
  } else {
    __builtin_memcpy(&bits, at, sizeof(bits));
  }
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// The tokens of a tile that lie in one block: tile tokens [first, first + count) are slots offset
// ... of `head`.
struct BlockRun {
  const std::byte* head;
  std::int64_t offset;
  int first;
  int count;
};

template <typename Use>
void ForBlockRuns(const AttentionJob& job, const KvPlane& plane, const Tile& tile, Use use) {
  const std::int64_t block_size = job.kv->block_size;
  for (int first = 0; first < tile.num_tokens;) {
    const std::int64_t position = tile.first_position + first;
    const std::int64_t offset = position % block_size;
    const std::int64_t left = tile.num_tokens - first;
    const std::int64_t count = block_size - offset < left ? block_size - offset : left;
    const std::int64_t block = job.block_table[position / block_size];
    const std::byte* head = plane.base + block * plane.block_stride +
                            job.layer * plane.layer_stride + job.kv_head * plane.head_stride;
    use(BlockRun{head, offset, first, static_cast<int>(count)});
    first += static_cast<int>(count);
  }
}

bool HasPairMajorKeys(const KvView& kv) {
  return kv.type == base::KvType::kBf16 && kv.key.token_stride == 4 && kv.block_size % kLanes == 0;
}

// bf16 pairs of neighbouring tokens side by side: a register of words is a register of tokens.
// Reads whole registers, inside the block; scores of tokens past the tile are computed and thrown
// away.
void LoadPairMajorKeys(const Scratch& s, const KvPlane& plane, const BlockRun& run) {
  for (std::int64_t d = 0; d < s.head_size; d += 2) {
    const std::byte* pairs = run.head + d / 2 * plane.pair_stride + run.offset * 4;
    float* even = s.keys + d * kTileTokens + run.first;
    for (int t = 0; t < run.count; t += kLanes) {
      const Int words = LoadInt(pairs + t * 4);
      Store(even + t, AsFloat(ShiftLeft<16>(words)));
      Store(even + kTileTokens + t, AsFloat(And(words, BroadcastInt(-0x10000))));
    }
  }
}

void LoadAnyKeys(const Scratch& s, const KvPlane& plane, const BlockRun& run, base::KvType type) {
  const std::int64_t element = type == base::KvType::kBf16 ? 2 : 4;
  for (int t = 0; t < run.count; ++t) {
    const std::byte* token = run.head + (run.offset + t) * plane.token_stride;
    for (std::int64_t d = 0; d < s.head_size; ++d) {
      s.keys[d * kTileTokens + run.first + t] =
          LoadElement(token + d / 2 * plane.pair_stride + d % 2 * element, type);
    }
  }
}

void LoadKeys(const AttentionJob& job, const Scratch& s, const Tile& tile) {
  const KvPlane& plane = job.kv->key;
  const bool pair_major = HasPairMajorKeys(*job.kv);
  ForBlockRuns(job, plane, tile, [&](const BlockRun& run) {
    if (pair_major) {
      LoadPairMajorKeys(s, plane, run);
    } else {
      LoadAnyKeys(s, plane, run, job.kv->type);
    }
  });
}

void LoadValues(const AttentionJob& job, const Scratch& s, const Tile& tile) {
  const KvPlane& plane = job.kv->value;
  const bool bf16 = job.kv->type == base::KvType::kBf16;
  ForBlockRuns(job, plane, tile, [&](const BlockRun& run) {
    for (int t = 0; t < run.count; ++t) {
      const std::byte* token = run.head + (run.offset + t) * plane.token_stride;
      float* out = s.values + (run.first + t) * s.head_size;
      for (std::int64_t d = 0; d < s.head_size; d += kLanes) {
        Store(out + d, bf16 ? LoadBf16(token + d * 2) : AsFloat(LoadInt(token + d * 4)));
      }
    }
  });
}

// Where the tokens of a tile lie in the pool, for the few rows of a decode step: widening a tile
// once would cost as much as using it. bf16, pair-major keys, whole registers of tokens inside a
// block.
struct TilePlaces {
  const std::byte* keys[kTileTokens / kLanes];  // pair 0 of kLanes tokens
  const std::byte* values[kTileTokens];
};

void FindTile(const AttentionJob& job, const Tile& tile, TilePlaces& places) {
  ForBlockRuns(job, job.kv->key, tile, [&](const BlockRun& run) {
    for (int t = 0; t < run.count; t += kLanes) {
      places.keys[(run.first + t) / kLanes] = run.head + (run.offset + t) * 4;
    }
  });
  // Registers past the tile are computed and thrown away.
  const int found = (tile.num_tokens + kLanes - 1) / kLanes;
  for (int v = found; v < kTileTokens / kLanes; ++v) places.keys[v] = places.keys[0];
  const KvPlane& values = job.kv->value;
  ForBlockRuns(job, values, tile, [&](const BlockRun& run) {
    for (int t = 0; t < run.count; ++t) {
      places.values[run.first + t] = run.head + (run.offset + t) * values.token_stride;
    }
  });
}

// Rows that see the same `visible` tokens of a tile.
struct RowBlock {
  const float* query[kRowBlock];
  float* state[kRowBlock];
  int visible;
  bool first_tile;           // of the chunk
  const TilePlaces* places;  // null: keys and values are in scratch
};

// acc[r][v] = fma(q_r[d], k_d, acc) for the keys that `key(v)` gives.
template <int kRows, typename Key>
inline void AddDim(const RowBlock& block, std::int64_t d, Float (&acc)[kRows][kVectorBlock],
                   Key key) {
  Float q[kRows];
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) q[r] = Broadcast(block.query[r][d]);
  PAGODA_UNROLL
  for (int v = 0; v < kVectorBlock; ++v) {
    const Float value = key(v);
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) acc[r][v] = Fma(q[r], value, acc[r][v]);
  }
}

// scores[r][t] = scale * (q_r . k_t), dims ascending.
template <int kRows, bool kFromPool>
void Scores(const AttentionJob& job, const Scratch& s, const RowBlock& block) {
  const Float scale = Broadcast(job.scale);
  for (int t = 0; t < block.visible; t += kVectorBlock * kLanes) {
    Float acc[kRows][kVectorBlock];
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectorBlock; ++v) acc[r][v] = Zero();
    }
    if constexpr (kFromPool) {
      const std::byte* const* places = block.places->keys + t / kLanes;
      const std::int64_t stride = job.kv->key.pair_stride;
      for (std::int64_t pair = 0; pair < s.head_size / 2; ++pair) {
        AddDim<kRows>(block, 2 * pair, acc, [&](int v) {
          return AsFloat(ShiftLeft<16>(LoadInt(places[v] + pair * stride)));
        });
        AddDim<kRows>(block, 2 * pair + 1, acc, [&](int v) {
          return AsFloat(And(LoadInt(places[v] + pair * stride), BroadcastInt(-0x10000)));
        });
      }
    } else {
      for (std::int64_t d = 0; d < s.head_size; ++d) {
        const float* keys = s.keys + d * kTileTokens + t;
        AddDim<kRows>(block, d, acc, [&](int v) { return Load(keys + v * kLanes); });
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectorBlock; ++v) {
        Store(s.weights + r * kTileTokens + t + v * kLanes, scale * acc[r][v]);
      }
    }
  }
}

float LargestFloat(Float v) {
  float lane[kLanes];
  Store(lane, v);
  for (int width = kLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] = lane[i] > lane[i + width] ? lane[i] : lane[i + width];
  }
  return lane[0];
}

float ExpOf(float x) {
  float lane[kLanes];
  Store(lane, Exp(Broadcast(x)));
  return lane[0];
}

// Turns a row's scores into weights, adds them to its sum lanes, moves its maximum; returns alpha.
float Softmax(const AttentionJob& job, const Scratch& s, const RowBlock& block, int r) {
  float* weights = s.weights + r * kTileTokens;
  float* state = block.state[r];
  const int end = (block.visible + kSumLanes - 1) / kSumLanes * kSumLanes;
  for (int t = block.visible; t < end; ++t) weights[t] = -__builtin_inff();
  Float top = Broadcast(Maximum(s, state));
  for (int t = 0; t < end; t += kLanes) top = Max(top, Load(weights + t));
  const float maximum = LargestFloat(top);
  const float alpha = block.first_tile ? 1.0f : ExpOf(Maximum(s, state) - maximum);
  Maximum(s, state) = maximum;

  Float sums[kSumLanes / kLanes];
  PAGODA_UNROLL
  for (int v = 0; v < kSumLanes / kLanes; ++v) {
    sums[v] = Load(SumLanes(s, state) + v * kLanes) * Broadcast(alpha);
  }
  const bool bf16 = job.kv->type == base::KvType::kBf16;
  for (int t = 0; t < end; t += kSumLanes) {
    PAGODA_UNROLL
    for (int v = 0; v < kSumLanes / kLanes; ++v) {
      Float weight = Exp(Load(weights + t + v * kLanes) - Broadcast(maximum));
      if (bf16) weight = RoundToBf16(weight);
      Store(weights + t + v * kLanes, weight);
      sums[v] = sums[v] + weight;
    }
  }
  PAGODA_UNROLL
  for (int v = 0; v < kSumLanes / kLanes; ++v) Store(SumLanes(s, state) + v * kLanes, sums[v]);
  return alpha;
}

// o_d = fma(p_t, v_td, o_d * alpha), tokens ascending, for kVectors registers of dims from `d`.
template <int kRows, int kVectors, bool kFromPool>
void AddValues(const Scratch& s, const RowBlock& block, const float* alphas, std::int64_t d) {
  Float acc[kRows][kVectors];
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = Load(block.state[r] + d + v * kLanes) * Broadcast(alphas[r]);
    }
  }
  for (int t = 0; t < block.visible; ++t) {
    Float weight[kRows];
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) weight[r] = Broadcast(s.weights[r * kTileTokens + t]);
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t dim = d + v * kLanes;
      Float value;
      if constexpr (kFromPool) {
        value = LoadBf16(block.places->values[t] + dim * 2);
      } else {
        value = Load(s.values + t * s.head_size + dim);
      }
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) acc[r][v] = Fma(weight[r], value, acc[r][v]);
    }
  }
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) Store(block.state[r] + d + v * kLanes, acc[r][v]);
  }
}

template <int kRows, bool kFromPool>
void AttendBlock(const AttentionJob& job, const Scratch& s, const RowBlock& block) {
  Scores<kRows, kFromPool>(job, s, block);
  float alphas[kRows];
  for (int r = 0; r < kRows; ++r) alphas[r] = Softmax(job, s, block, r);
  std::int64_t d = 0;
  for (; d + kVectorBlock * kLanes <= s.head_size; d += kVectorBlock * kLanes) {
    AddValues<kRows, kVectorBlock, kFromPool>(s, block, alphas, d);
  }
  for (; d < s.head_size; d += kLanes) AddValues<kRows, 1, kFromPool>(s, block, alphas, d);
}

template <int kRows>
void AttendRows(const AttentionJob& job, const Scratch& s, const RowBlock& block) {
  if (block.places != nullptr) {
    AttendBlock<kRows, true>(job, s, block);
  } else {
    AttendBlock<kRows, false>(job, s, block);
  }
}

int VisibleTokens(const AttentionJob& job, const Tile& tile, int row) {
  const std::int64_t position = job.first_position + row / job.group_size;
  const std::int64_t visible = position - tile.first_position + 1;
  return static_cast<int>(visible < tile.num_tokens ? visible : tile.num_tokens);
}

void AttendTile(const AttentionJob& job, const Scratch& s, const Tile& tile) {
  const int num_rows = job.num_tokens * job.group_size;
  const bool from_pool = num_rows <= 2 * kRowBlock && HasPairMajorKeys(*job.kv);
  TilePlaces places;
  if (from_pool) {
    FindTile(job, tile, places);
  } else {
    LoadKeys(job, s, tile);
    LoadValues(job, s, tile);
  }
  for (int row = 0; row < num_rows;) {
    RowBlock block = {};
    block.places = from_pool ? &places : nullptr;
    block.visible = VisibleTokens(job, tile, row);
    block.first_tile = tile.first_position % kAttentionChunk == 0;
    if (block.visible <= 0) {
      ++row;
      continue;
    }
    int count = 0;
    for (; count < kRowBlock && row < num_rows; ++count, ++row) {
      if (VisibleTokens(job, tile, row) != block.visible) break;
      block.query[count] =
          job.query + row / job.group_size * job.query_stride + row % job.group_size * s.head_size;
      block.state[count] = s.State(row);
    }
    if (count == 3) AttendRows<3>(job, s, block);
    if (count == 2) AttendRows<2>(job, s, block);
    if (count == 1) AttendRows<1>(job, s, block);
  }
}

// A chunk's state as o [D], l, m.
void FinishChunk(const Scratch& s, float* state, float* out) {
  float lane[kSumLanes];
  for (int i = 0; i < kSumLanes; ++i) lane[i] = SumLanes(s, state)[i];
  for (int width = kSumLanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] = lane[i] + lane[i + width];
  }
  for (std::int64_t d = 0; d < s.head_size; d += kLanes) Store(out + d, Load(state + d));
  out[s.head_size] = lane[0];
  out[s.head_size + 1] = Maximum(s, state);
}

// total = total merged with chunk, both o [D], l, m.
void Merge(float* total, const float* chunk, std::int64_t head_size) {
  float& sum = total[head_size];
  float& maximum = total[head_size + 1];
  const float m = chunk[head_size + 1];
  const float larger = maximum > m ? maximum : m;
  const float a = ExpOf(maximum - larger);
  const float b = ExpOf(m - larger);
  sum = __builtin_fmaf(chunk[head_size], b, sum * a);
  for (std::int64_t d = 0; d < head_size; d += kLanes) {
    Store(total + d, Fma(Load(chunk + d), Broadcast(b), Load(total + d) * Broadcast(a)));
  }
  maximum = larger;
}

void WriteNormalized(const float* total, std::int64_t head_size, float* out) {
  const Float sum = Broadcast(total[head_size]);
  for (std::int64_t d = 0; d < head_size; d += kLanes) Store(out + d, Load(total + d) / sum);
}

void ResetState(const Scratch& s, float* state) {
  for (std::int64_t i = 0; i < s.head_size + kSumLanes; ++i) state[i] = 0.0f;
  Maximum(s, state) = -__builtin_inff();
}

// The end of a chunk for one row: into its total, or out as a partial state.
void CloseChunk(const AttentionJob& job, const Scratch& s, std::int64_t chunk, int row) {
  float* state = s.State(row);
  if (job.partial != nullptr) {
    FinishChunk(s, state, job.partial + row * s.TotalFloats());
  } else if (chunk == 0) {
    FinishChunk(s, state, s.Total(row));
  } else {
    // The state is its own first part: o stays where it is, l and m move behind it.
    FinishChunk(s, state, state);
    Merge(s.Total(row), state, s.head_size);
  }
}

}  // namespace

void Attend(const AttentionJob& job) {
  const Scratch s(job);
  const int num_rows = job.num_tokens * job.group_size;
  const std::int64_t context = job.first_position + job.num_tokens;
  const std::int64_t tile_tokens = s.head_size > 128 ? kTileTokens / 2 : kTileTokens;
  for (std::int64_t chunk = job.first_chunk; chunk <= job.last_chunk; ++chunk) {
    const std::int64_t begin = chunk * kAttentionChunk;
    const std::int64_t end = begin + kAttentionChunk < context ? begin + kAttentionChunk : context;
    for (int row = 0; row < num_rows; ++row) ResetState(s, s.State(row));
    for (std::int64_t first = begin; first < end; first += tile_tokens) {
      const std::int64_t left = end - first;
      AttendTile(job, s, {first, static_cast<int>(left < tile_tokens ? left : tile_tokens)});
    }
    for (int row = 0; row < num_rows; ++row) {
      if (job.first_position + row / job.group_size >= begin) CloseChunk(job, s, chunk, row);
    }
  }
  if (job.partial != nullptr) return;
  for (int row = 0; row < num_rows; ++row) {
    float* out =
        job.out + row / job.group_size * job.out_stride + row % job.group_size * s.head_size;
    WriteNormalized(s.Total(row), s.head_size, out);
  }
}

void MergePartials(const MergeJob& job) {
  float total[kMaxHeadSize + 2];
  for (std::int64_t i = 0; i < job.head_size + 2; ++i) total[i] = job.partial[i];
  for (std::int64_t chunk = 1; chunk < job.num_chunks; ++chunk) {
    Merge(total, job.partial + chunk * job.stride, job.head_size);
  }
  WriteNormalized(total, job.head_size, job.out);
}

}  // namespace pagoda::kernels::cpu::PAGODA_INSTRUCTION_CLASS
