#include "tests/model/naive_llama.h"

#include <cmath>
#include <cstring>
#include <string>

#include "base/bits.h"
#include "formats/gguf.h"

namespace pagoda::model {
namespace {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;  // [outputs][inputs]
using formats::GgufType;

template <typename T>
T At(const formats::GgufTensor& tensor, std::size_t offset) {
  T value{};
  std::memcpy(&value, tensor.data.data() + offset, sizeof value);
  return value;
}

int ByteAt(const formats::GgufTensor& tensor, std::size_t offset) {
  return At<std::uint8_t>(tensor, offset);
}

double HalfAt(const formats::GgufTensor& tensor, std::size_t offset) {
  return static_cast<double>(base::FloatFromF16(At<std::uint16_t>(tensor, offset)));
}

// Value i of a K type. Every eight groups of 32 have a block.
double KValueAt(const formats::GgufTensor& tensor, std::size_t i) {
  const std::size_t group = i / 32 % 8;
  const std::size_t place = i % 32;
  if (static_cast<GgufType>(tensor.type) == GgufType::kQ6_K) {
    const std::size_t start = i / 256 * 210;
    const std::size_t half = group / 4;
    const int pair = ByteAt(tensor, start + half * 64 + group % 2 * 32 + place);
    const int low = group % 4 < 2 ? pair & 15 : pair >> 4;
    const int high = ByteAt(tensor, start + 128 + half * 32 + place) >> (group % 4 * 2) & 3;
    const int scale = At<std::int8_t>(tensor, start + 192 + i % 256 / 16);
    return HalfAt(tensor, start + 208) * scale * (low + 16 * high - 32);
  }
  const bool is_five = static_cast<GgufType>(tensor.type) == GgufType::kQ5_K;
  const std::size_t start = i / 256 * (is_five ? 176 : 144);
  const int pair = ByteAt(tensor, start + (is_five ? 48 : 16) + group / 2 * 32 + place);
  int q = group % 2 == 0 ? pair & 15 : pair >> 4;
  if (is_five) q += (ByteAt(tensor, start + 16 + place) >> group & 1) * 16;
  const int first = ByteAt(tensor, start + 4 + group % 4);
  const int second = ByteAt(tensor, start + 8 + group % 4);
  const int third = ByteAt(tensor, start + 12 + group % 4);
  const int scale = group < 4 ? first & 63 : (third & 15) + (first >> 6) * 16;
  const int minimum = group < 4 ? second & 63 : (third >> 4) + (second >> 6) * 16;
  return HalfAt(tensor, start) * scale * q - HalfAt(tensor, start + 2) * minimum;
}

double ValueAt(const formats::GgufTensor& tensor, std::size_t i) {
  const std::size_t block = i / 32;
  const std::size_t place = i % 32;
  const auto nibble = [&](std::size_t start) {
    const int byte = ByteAt(tensor, start + place % 16);
    return place < 16 ? byte & 15 : byte >> 4;
  };
  const auto five = [&](std::size_t start) {
    return nibble(start + 4) + (At<std::uint32_t>(tensor, start) >> place & 1) * 16;
  };
  const auto half = [&](std::size_t offset) { return HalfAt(tensor, offset); };
  switch (static_cast<GgufType>(tensor.type)) {
    case GgufType::kF32:
      return At<float>(tensor, 4 * i);
    case GgufType::kF16:
      return half(2 * i);
    case GgufType::kBf16:
      return base::FloatFromBf16(At<std::uint16_t>(tensor, 2 * i));
    case GgufType::kQ4_0:
      return half(18 * block) * (nibble(18 * block + 2) - 8);
    case GgufType::kQ4_1:
      return half(20 * block) * nibble(20 * block + 4) + half(20 * block + 2);
    case GgufType::kQ5_0:
      return half(22 * block) * (five(22 * block + 2) - 16.0);
    case GgufType::kQ5_1:
      return half(24 * block) * five(24 * block + 4) + half(24 * block + 2);
    case GgufType::kQ8_0:
      return half(34 * block) * At<std::int8_t>(tensor, 34 * block + 2 + place);
    case GgufType::kQ4_K:
    case GgufType::kQ5_K:
    case GgufType::kQ6_K:
      return KValueAt(tensor, i);
  }
  return std::nan("");
}

class NaiveLlama {
 public:
  explicit NaiveLlama(const formats::GgufFile& file) : file_(file) {}

  Row Logits(std::span<const base::TokenId> tokens) {
    const Matrix embedding = Load("token_embd.weight");
    Matrix hidden;
    for (const base::TokenId token : tokens) hidden.push_back(embedding[token]);
    const std::uint64_t num_layers = Number("llama.block_count");
    for (std::uint64_t layer = 0; layer < num_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      Attend(prefix, hidden);
      FeedForward(prefix, hidden);
    }
    const Row last = Normed(hidden.back(), Load("output_norm.weight")[0]);
    const bool has_head = file_.FindTensor("output.weight") != nullptr;
    return Times(has_head ? Load("output.weight") : embedding, last);
  }

 private:
  std::uint64_t Number(const std::string& key) const { return *file_.Unsigned(key); }

  Matrix Load(const std::string& name) const {
    const formats::GgufTensor& tensor = *file_.FindTensor(name);
    const std::size_t columns = tensor.shape[0];
    const std::size_t rows = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
    Matrix matrix(rows, Row(columns));
    for (std::size_t i = 0; i < rows * columns; ++i) {
      matrix[i / columns][i % columns] = ValueAt(tensor, i);
    }
    return matrix;
  }

  static Row Times(const Matrix& matrix, const Row& x) {
    Row y;
    for (const Row& row : matrix) {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }

  Row Normed(const Row& x, const Row& weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double epsilon = *file_.Float("llama.attention.layer_norm_rms_epsilon");
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
    Row y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * inverse * weight[i]);
    return y;
  }

  // Neighbouring dims of a head form the pairs that turn.
  void Turn(Row& row, std::size_t position) const {
    const std::size_t size = Number("llama.attention.key_length");
    const double base = *file_.Float("llama.rope.freq_base");
    for (std::size_t i = 0; i < row.size(); i += 2) {
      const double power = static_cast<double>(i % size) / static_cast<double>(size);
      const double angle = static_cast<double>(position) * std::pow(base, -power);
      const double a = row[i];
      const double b = row[i + 1];
      row[i] = a * std::cos(angle) - b * std::sin(angle);
      row[i + 1] = b * std::cos(angle) + a * std::sin(angle);
    }
  }

  void Attend(const std::string& prefix, Matrix& hidden) const {
    const Row norm = Load(prefix + "attn_norm.weight")[0];
    const Matrix wq = Load(prefix + "attn_q.weight");
    const Matrix wk = Load(prefix + "attn_k.weight");
    const Matrix wv = Load(prefix + "attn_v.weight");
    const Matrix wo = Load(prefix + "attn_output.weight");
    Matrix queries, keys, values;
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const Row x = Normed(hidden[t], norm);
      queries.push_back(Times(wq, x));
      keys.push_back(Times(wk, x));
      values.push_back(Times(wv, x));
      Turn(queries[t], t);
      Turn(keys[t], t);
    }
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const Row added = Times(wo, Mix(queries[t], keys, values, t));
      for (std::size_t i = 0; i < added.size(); ++i) hidden[t][i] += added[i];
    }
  }

  // Softmax-weighted values of all heads at position t.
  Row Mix(const Row& query, const Matrix& keys, const Matrix& values, std::size_t t) const {
    const std::size_t size = Number("llama.attention.key_length");
    const std::size_t heads = Number("llama.attention.head_count");
    const std::size_t group = heads / Number("llama.attention.head_count_kv");
    Row out(query.size(), 0.0);
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t kv = head / group * size;
      Row weights;
      double total = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t d = 0; d < size; ++d) score += query[head * size + d] * keys[s][kv + d];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
        total += weights.back();
      }
      for (std::size_t s = 0; s <= t; ++s) {
        for (std::size_t d = 0; d < size; ++d) {
          out[head * size + d] += weights[s] / total * values[s][kv + d];
        }
      }
    }
    return out;
  }

  void FeedForward(const std::string& prefix, Matrix& hidden) const {
    const Row norm = Load(prefix + "ffn_norm.weight")[0];
    const Matrix gate = Load(prefix + "ffn_gate.weight");
    const Matrix up = Load(prefix + "ffn_up.weight");
    const Matrix down = Load(prefix + "ffn_down.weight");
    for (Row& row : hidden) {
      const Row x = Normed(row, norm);
      Row g = Times(gate, x);
      const Row u = Times(up, x);
      for (std::size_t i = 0; i < g.size(); ++i) g[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
      const Row added = Times(down, g);
      for (std::size_t i = 0; i < added.size(); ++i) row[i] += added[i];
    }
  }

  const formats::GgufFile& file_;
};

}  // namespace

std::vector<double> NaiveLlamaLogits(std::span<const std::byte> gguf,
                                     std::span<const base::TokenId> tokens) {
  const auto file = formats::GgufFile::Parse(gguf, "naive.gguf");
  return NaiveLlama(**file).Logits(tokens);
}

}  // namespace pagoda::model
