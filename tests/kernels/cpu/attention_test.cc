#include "kernels/cpu/attention.h"

#include <algorithm>
#include <numeric>

#include "base/bits.h"
#include "base/exact_math.h"
#include "tests/kernels/cpu/cpu_fixture.h"

// Attention, KV writes and block moves over a real block-major pool, against plain loops in the
// order of kernels/README.md.
namespace pagoda::kernels::cpu {
namespace {

struct Shape {
  std::int32_t head_size = 64;
  std::int32_t num_kv_heads = 2;
  std::int32_t group_size = 3;
  std::int32_t block_size = 16;
  base::KvType type = base::KvType::kBf16;
  KeyOrder key_order = KeyOrder::kDimPairMajor;
};

constexpr std::int32_t kNumLayers = 2;
constexpr std::int32_t kLayer = 1;

// One sequence whose K and V lie in scrambled blocks of a pool filled with NaN.
class Pool {
 public:
  Pool(const Shape& shape, std::int32_t context, std::mt19937& random)
      : shape_(shape),
        key_(context, shape.num_kv_heads * shape.head_size),
        value_(context, shape.num_kv_heads * shape.head_size) {
    const base::KvGroup group = {.num_layers = kNumLayers,
                                 .window_tokens = std::nullopt,
                                 .num_kv_heads = shape.num_kv_heads,
                                 .head_size = shape.head_size,
                                 .type = shape.type};
    const std::int32_t num_blocks = base::DivUp(context, shape.block_size) + 3;
    bytes_.assign(
        static_cast<std::size_t>(group.BytesPerToken() * shape.block_size * num_blocks) / 4,
        0xffffffffu);
    view_ = BlockMajorKvView(reinterpret_cast<std::byte*>(bytes_.data()), group, shape.block_size,
                             num_blocks, shape.key_order);
    blocks_.resize(static_cast<std::size_t>(num_blocks - 1));
    std::iota(blocks_.begin(), blocks_.end(), 1u);
    std::shuffle(blocks_.begin(), blocks_.end(), random);
    FillNormal(key_, random);
    FillNormal(value_, random);
  }

  void Write(Ops& ops) {
    std::vector<std::int64_t> slots;
    for (std::int64_t t = 0; t < key_.rows; ++t) {
      const std::int64_t block = blocks_[static_cast<std::size_t>(t / shape_.block_size)];
      slots.push_back(block * shape_.block_size + t % shape_.block_size);
    }
    ops.WriteKv(
        {.key = key_.view(), .value = value_.view(), .kv = &view_, .layer = kLayer, .slots = slots},
        {});
  }

  float Rounded(float x) const {
    return shape_.type == base::KvType::kBf16 ? base::FloatFromBf16(base::Bf16FromFloat(x)) : x;
  }
  float Key(std::int64_t token, std::int64_t column) { return Rounded(key_.at(token, column)); }
  float Value(std::int64_t token, std::int64_t column) { return Rounded(value_.at(token, column)); }
  const KvView& view() const { return view_; }
  std::span<const std::uint32_t> blocks() const { return blocks_; }
  Matrix& key() { return key_; }

 private:
  Shape shape_;
  Matrix key_, value_;
  std::vector<std::uint32_t> bytes_;
  std::vector<std::uint32_t> blocks_;
  KvView view_;
};

struct State {
  float maximum = -std::numeric_limits<float>::infinity();
  float lane[16] = {};
  std::vector<float> o;
};

float TreeSum(State& state) {
  for (int w = 8; w >= 1; w /= 2) {
    for (int i = 0; i < w; ++i) state.lane[i] = state.lane[i] + state.lane[i + w];
  }
  return state.lane[0];
}

class PlainAttention {
 public:
  PlainAttention(const Shape& shape, Pool& pool, float scale)
      : shape_(shape), pool_(pool), scale_(scale) {}

  std::vector<float> Row(const float* query, std::int64_t position, std::int64_t kv_head) {
    first_column_ = kv_head * shape_.head_size;
    float total_max = 0.0f;
    float total_sum = 0.0f;
    std::vector<float> total;
    for (std::int64_t begin = 0; begin <= position; begin += 256) {
      State state = Chunk(query, begin, std::min(begin + 255, position));
      const float sum = TreeSum(state);
      if (begin == 0) {
        total_max = state.maximum;
        total_sum = sum;
        total = state.o;
        continue;
      }
      const float larger = std::max(total_max, state.maximum);
      const float a = base::Exp(total_max - larger);
      const float b = base::Exp(state.maximum - larger);
      total_sum = std::fma(sum, b, total_sum * a);
      for (std::size_t d = 0; d < total.size(); ++d) {
        total[d] = std::fma(state.o[d], b, total[d] * a);
      }
      total_max = larger;
    }
    for (float& value : total) value = value / total_sum;
    return total;
  }

 private:
  State Chunk(const float* query, std::int64_t begin, std::int64_t last) {
    State state;
    state.o.assign(static_cast<std::size_t>(shape_.head_size), 0.0f);
    const std::int64_t tile = shape_.head_size > 128 ? 32 : 64;
    for (std::int64_t first = begin; first <= last; first += tile) {
      Tile(query, first, std::min(first + tile - 1, last), first == begin, state);
    }
    return state;
  }

  void Tile(const float* query, std::int64_t first, std::int64_t last, bool first_tile,
            State& state) {
    std::vector<float> weights;
    float maximum = state.maximum;
    for (std::int64_t t = first; t <= last; ++t) {
      float acc = 0.0f;
      for (std::int64_t d = 0; d < shape_.head_size; ++d) {
        acc = std::fma(query[d], pool_.Key(t, first_column_ + d), acc);
      }
      weights.push_back(scale_ * acc);
      maximum = std::max(maximum, weights.back());
    }
    if (!first_tile) {
      const float alpha = base::Exp(state.maximum - maximum);
      for (float& value : state.o) value = value * alpha;
      for (float& lane : state.lane) lane = lane * alpha;
    }
    state.maximum = maximum;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const float weight = pool_.Rounded(base::Exp(weights[j] - maximum));
      state.lane[j % 16] = state.lane[j % 16] + weight;
      for (std::int64_t d = 0; d < shape_.head_size; ++d) {
        float& o = state.o[static_cast<std::size_t>(d)];
        o = std::fma(weight, pool_.Value(first + static_cast<std::int64_t>(j), first_column_ + d),
                     o);
      }
    }
  }

  const Shape shape_;
  Pool& pool_;
  const float scale_;
  std::int64_t first_column_ = 0;
};

class AttentionTest : public CpuOpsTest {
 protected:
  // The last num_tokens of the context attend, split into the given numbers of tokens.
  void Check(const Shape& shape, std::int32_t context, const std::vector<std::int32_t>& splits) {
    Pool pool(shape, context, random_);
    pool.Write(*ops_);
    const std::int32_t num_tokens = std::accumulate(splits.begin(), splits.end(), 0);
    const std::int32_t num_heads = shape.num_kv_heads * shape.group_size;
    Matrix query(num_tokens, num_heads * shape.head_size);
    FillNormal(query, random_);
    Matrix out(num_tokens, query.columns);
    Matrix expected(num_tokens, query.columns);
    constexpr float kScale = 0.25f;
    std::vector<AttentionWork> work;
    std::int32_t row = 0;
    for (const std::int32_t count : splits) {
      work.push_back({row, count, context - num_tokens + row, pool.blocks()});
      row += count;
    }
    ops_->Attention({.query = query.view(),
                     .out = out.view(),
                     .kv = &pool.view(),
                     .layer = kLayer,
                     .num_query_heads = num_heads,
                     .scale = kScale,
                     .work = work},
                    {});
    PlainAttention plain(shape, pool, kScale);
    for (std::int64_t t = 0; t < num_tokens; ++t) {
      for (std::int64_t h = 0; h < num_heads; ++h) {
        const std::vector<float> row_out = plain.Row(
            &query.at(t, h * shape.head_size), context - num_tokens + t, h / shape.group_size);
        std::copy(row_out.begin(), row_out.end(), &expected.at(t, h * shape.head_size));
      }
    }
    ExpectSameBits(out, expected);
  }

  std::mt19937 random_{20261129};
};

TEST_P(AttentionTest, DecodeMatchesPlainLoopsAtEveryEdgeOfBlocksTilesAndChunks) {
  for (const std::int32_t context : {1, 2, 15, 16, 17, 63, 64, 65, 128, 255, 256, 257, 600, 1025}) {
    SCOPED_TRACE(context);
    Check({}, context, {1});
  }
}

TEST_P(AttentionTest, PrefillMatchesPlainLoopsHoweverItIsCut) {
  Check({}, 90, {90});
  Check({}, 90, {1, 16, 30, 40, 3});
  Check({}, 330, {40, 7});
  Check({}, 530, {1, 1, 1, 20});
}

TEST_P(AttentionTest, EveryShapeTypeAndKeyOrderMatchesPlainLoops) {
  for (const base::KvType type : {base::KvType::kBf16, base::KvType::kF32}) {
    for (const KeyOrder order : {KeyOrder::kTokenMajor, KeyOrder::kDimPairMajor}) {
      for (const std::int32_t head_size : {16, 32, 64, 80, 128, 144, 256}) {
        for (const std::int32_t block_size : {4, 16, 128}) {
          SCOPED_TRACE(testing::Message() << base::Name(type) << " " << static_cast<int>(order)
                                          << " D " << head_size << " block " << block_size);
          Check({head_size, 2, 2, block_size, type, order}, 75, {1, 5});
        }
      }
      for (const std::int32_t group_size : {1, 2, 4, 5, 12, 64}) {
        Check({32, 1, group_size, 8, type, order}, 300, {1, 3});
      }
    }
  }
}

TEST_P(AttentionTest, ANanInALaterTokenReachesNoEarlierRow) {
  const Shape shape;
  Pool pool(shape, 20, random_);
  pool.key().at(10, 3) = std::nanf("");
  pool.Write(*ops_);
  Matrix query(20, 6 * 64);
  FillNormal(query, random_);
  Matrix out(20, query.columns);
  const std::vector<AttentionWork> work = {{0, 20, 0, pool.blocks()}};
  ops_->Attention({.query = query.view(),
                   .out = out.view(),
                   .kv = &pool.view(),
                   .layer = kLayer,
                   .num_query_heads = 6,
                   .scale = 1.0f,
                   .work = work},
                  {});
  for (std::int64_t t = 0; t < 20; ++t) {
    EXPECT_EQ(std::isnan(out.at(t, 0)), t >= 10) << "row " << t;
    EXPECT_FALSE(std::isnan(out.at(t, 5 * 64))) << "the other KV head, row " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionTest, testing::ValuesIn(AllSettings()), SettingName);

}  // namespace
}  // namespace pagoda::kernels::cpu
