#include "kernels/cpu/matmul.h"

#include <algorithm>

#include "base/bits.h"
#include "tests/kernels/cpu/cpu_fixture.h"

// Matrix products against plain loops over the bytes of the source, in the order of
// kernels/README.md.
namespace pagoda::kernels::cpu {
namespace {

struct Source {
  TensorView view() const { return TensorView::Contiguous(bytes.data(), format, rows, columns); }
  ElementType format;
  std::int64_t rows, columns;
  std::vector<std::byte> bytes;
};

bool HasMin(ElementType format) {
  return format == ElementType::kQ4_1 || format == ElementType::kQ5_1 ||
         format == ElementType::kQ4_K || format == ElementType::kQ5_K;
}

// Random bytes, with every f16 and bf16 made an ordinary number.
Source MakeSource(ElementType format, std::int64_t rows, std::int64_t columns,
                  std::mt19937& random) {
  Source source = {format, rows, columns, {}};
  source.bytes.resize(static_cast<std::size_t>(rows * RowBytes(format, columns)));
  for (std::byte& byte : source.bytes) byte = static_cast<std::byte>(random() & 0xff);
  const auto put_half = [&](std::size_t at) {
    const auto half = static_cast<std::uint16_t>(0x2000u + (random() & 0x8fffu));
    std::memcpy(&source.bytes[at], &half, 2);
  };
  const auto unit = static_cast<std::size_t>(BlockBytes(format));
  for (std::size_t at = 0; at < source.bytes.size(); at += unit) {
    if (format == ElementType::kF32) {
      const float value = std::normal_distribution<float>()(random);
      std::memcpy(&source.bytes[at], &value, 4);
    } else if (format == ElementType::kBf16) {
      const auto value = base::Bf16FromFloat(std::normal_distribution<float>()(random));
      std::memcpy(&source.bytes[at], &value, 2);
    } else {
      put_half(format == ElementType::kQ6_K ? at + 208 : at);
      if (HasMin(format)) put_half(at + 2);
    }
  }
  return source;
}

float HalfAt(const std::byte* p) {
  std::uint16_t half;
  std::memcpy(&half, p, 2);
  return base::FloatFromF16(half);
}

// One quantized weight: scale * multiple * q + minimum, with multiple 1 but for Q6_K.
struct Quantized {
  int q = 0;
  int multiple = 1;
  float scale = 0.0f;
  float minimum = 0.0f;
};

int At(const std::byte* p, std::int64_t i) { return std::to_integer<int>(p[i]); }

// Nibbles of i and i + 16 together; from `fifths` on bit i for element i.
Quantized Of32(ElementType format, const std::byte* block, int i) {
  const bool five = format == ElementType::kQ5_0 || format == ElementType::kQ5_1;
  Quantized made;
  made.scale = HalfAt(block);
  if (HasMin(format)) made.minimum = HalfAt(block + 2);
  const std::byte* payload = block + (HasMin(format) ? 4 : 2);
  if (format == ElementType::kQ8_0) {
    made.q = static_cast<std::int8_t>(payload[i]);
    return made;
  }
  const int byte = At(payload, (five ? 4 : 0) + i % 16);
  made.q = i < 16 ? byte & 15 : byte >> 4;
  if (five && ((At(payload, i / 8) >> (i % 8)) & 1) != 0) made.q += 16;
  if (format == ElementType::kQ4_0) made.q -= 8;
  if (format == ElementType::kQ5_0) made.q -= 16;
  return made;
}

Quantized Of256(ElementType format, const std::byte* block, int i) {
  Quantized made;
  if (format == ElementType::kQ6_K) {
    const int part = i / 128;
    const int within = i % 128;
    const int low = At(block, 64 * part + within % 64) >> (within < 64 ? 0 : 4) & 15;
    const int high = At(block, 128 + 32 * part + within % 32) >> (within / 32 * 2) & 3;
    made.q = low + 16 * high - 32;
    made.multiple = static_cast<std::int8_t>(block[192 + i / 16]);
    made.scale = HalfAt(block + 208);
    return made;
  }
  const int sub = i / 32;
  const bool five = format == ElementType::kQ5_K;
  made.q = At(block, (five ? 48 : 16) + i / 64 * 32 + i % 32) >> (sub % 2 * 4) & 15;
  if (five && (At(block, 16 + i % 32) >> sub & 1) != 0) made.q += 16;
  int scale = At(block, 4 + sub % 4);
  int minimum = At(block, 8 + sub % 4);
  if (sub < 4) {
    scale %= 64;
    minimum %= 64;
  } else {
    scale = scale / 64 * 16 + At(block, 8 + sub) % 16;
    minimum = minimum / 64 * 16 + At(block, 8 + sub) / 16;
  }
  made.scale = HalfAt(block) * static_cast<float>(scale);
  made.minimum = -(HalfAt(block + 2) * static_cast<float>(minimum));
  return made;
}

Quantized QuantizedAt(const Source& source, std::int64_t n, std::int64_t k) {
  const std::int64_t columns = BlockColumns(source.format);
  const std::byte* block = source.view().Row(n) + k / columns * BlockBytes(source.format);
  const int i = static_cast<int>(k % columns);
  return columns == 32 ? Of32(source.format, block, i) : Of256(source.format, block, i);
}

float Weight(const Source& source, std::int64_t n, std::int64_t k) {
  if (IsQuantized(source.format)) {
    const Quantized w = QuantizedAt(source, n, k);
    const float product = w.scale * static_cast<float>(w.multiple) * static_cast<float>(w.q);
    return HasMin(source.format) ? product + w.minimum : product;
  }
  const std::byte* at = source.view().Row(n) + k * BlockBytes(source.format);
  if (source.format == ElementType::kF16) return HalfAt(at);
  if (source.format == ElementType::kBf16) {
    std::uint16_t value;
    std::memcpy(&value, at, 2);
    return base::FloatFromBf16(value);
  }
  float value;
  std::memcpy(&value, at, 4);
  return value;
}

float FloatProduct(const Source& source, std::int64_t n, const float* x) {
  float acc = 0.0f;
  for (std::int64_t k = 0; k < source.columns; ++k) acc = std::fma(x[k], Weight(source, n, k), acc);
  return acc;
}

float Int8Product(const Source& source, std::int64_t n, const float* x) {
  float acc = 0.0f;
  for (std::int64_t b = 0; b < source.columns / 32; ++b) {
    float top = 0.0f;
    bool finite = true;
    for (int i = 0; i < 32; ++i) {
      finite = finite && std::isfinite(x[b * 32 + i]);
      top = std::max(top, std::fabs(x[b * 32 + i]));
    }
    const bool tiny = top < 0x1p-100f;
    const float scale = !finite ? std::nanf("") : (tiny ? 0.0f : top / 127.0f);
    const float inverse = !finite || tiny ? 0.0f : 127.0f / top;
    const Quantized first = QuantizedAt(source, n, b * 32);
    int dot = 0;
    int sum = 0;
    for (int i = 0; i < 32; ++i) {
      const int q = inverse == 0.0f ? 0 : static_cast<int>(std::nearbyint(x[b * 32 + i] * inverse));
      const Quantized w = QuantizedAt(source, n, b * 32 + i);
      dot += q * w.multiple * w.q;
      sum += q;
    }
    acc = std::fma(first.scale * scale, static_cast<float>(dot), acc);
    if (HasMin(source.format)) {
      acc = std::fma(first.minimum, scale * static_cast<float>(sum), acc);
    }
  }
  return acc;
}

Matrix ExpectedProduct(const std::vector<Source>& parts, Matrix& x, ActivationType wanted) {
  std::int64_t num_outputs = 0;
  for (const Source& part : parts) num_outputs += part.rows;
  Matrix out(x.rows, num_outputs);
  std::int64_t first = 0;
  for (const Source& part : parts) {
    const bool int8 = ActivationFor(part.format, wanted) == ActivationType::kInt8;
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::int64_t n = 0; n < part.rows; ++n) {
        out.at(r, first + n) =
            int8 ? Int8Product(part, n, &x.at(r, 0)) : FloatProduct(part, n, &x.at(r, 0));
      }
    }
    first += part.rows;
  }
  return out;
}

struct Packed {
  PackedWeight weight;
  std::vector<std::byte> bytes;
};

Packed PackParts(const std::vector<Source>& parts, WeightRole role, ActivationType activation) {
  std::vector<PartShape> shapes;
  std::vector<TensorView> views;
  for (const Source& part : parts) {
    shapes.push_back({part.format, part.rows, part.columns});
    views.push_back(part.view());
  }
  auto plan = PlanPack(shapes, role, {}, {PackLayout::kColumnPanels, activation});
  EXPECT_TRUE(plan.ok()) << plan.status();
  Packed packed;
  packed.bytes.resize(static_cast<std::size_t>(plan->bytes));
  Pack(*plan, views, packed.bytes);
  packed.weight = {*plan, packed.bytes.data()};
  return packed;
}

MatmulParams Product(Matrix& x, const Packed& packed, Matrix& out) {
  MatmulParams params;
  params.x = x.view();
  params.weight = &packed.weight;
  params.out = out.view();
  return params;
}

class MatmulTest : public CpuOpsTest {
 protected:
  std::mt19937 random_{20261129};
};

TEST_P(MatmulTest, EveryFormatRowCountAndRaggedPanelMatchesPlainLoops) {
  for (const ElementType format : kAllElementTypes) {
    for (const ActivationType activation : {ActivationType::kF32, ActivationType::kInt8}) {
      for (const std::int64_t num_rows : {1, 2, 3, 4, 5, 8, 67}) {
        SCOPED_TRACE(std::string(Name(format)) + " " + Name(activation) + " rows " +
                     std::to_string(num_rows));
        const std::int64_t k = BlockColumns(format) == 256 ? 512 : 96;
        const std::vector<Source> parts = {MakeSource(format, 45, k, random_)};
        const Packed packed = PackParts(parts, WeightRole::kDown, activation);
        Matrix x(num_rows, k);
        FillNormal(x, random_);
        Matrix out(num_rows, 45);
        ops_->Matmul(Product(x, packed, out), {});
        Matrix expected = ExpectedProduct(parts, x, activation);
        ExpectSameBits(out, expected);
      }
    }
  }
}

// The whole of every block but its f16 numbers, so the smallest and largest sub-scales too.
TEST_P(MatmulTest, ExtremeBytesAreExact) {
  for (const ElementType format : kAllElementTypes) {
    if (!IsQuantized(format)) continue;
    for (const int fill : {0x00, 0x7f, 0x80, 0x81, 0xff}) {
      SCOPED_TRACE(std::string(Name(format)) + " " + std::to_string(fill));
      const std::int64_t k = std::max<std::int64_t>(64, BlockColumns(format));
      std::vector<Source> parts = {MakeSource(format, 32, k, random_)};
      const auto unit = static_cast<std::size_t>(BlockBytes(format));
      const std::size_t first = format == ElementType::kQ6_K ? 0 : HasMin(format) ? 4 : 2;
      const std::size_t last = format == ElementType::kQ6_K ? 208 : unit;
      for (std::size_t at = 0; at < parts[0].bytes.size(); ++at) {
        if (at % unit >= first && at % unit < last) {
          // Six-bit elements get the sub-scale of the largest magnitude.
          const bool is_scale = format == ElementType::kQ6_K && at % unit >= 192;
          parts[0].bytes[at] = static_cast<std::byte>(is_scale ? 0x80 : fill);
        }
      }
      const Packed packed = PackParts(parts, WeightRole::kDown, ActivationType::kInt8);
      for (const float sign : {1.0f, -1.0f}) {
        Matrix x(5, k);
        for (std::int64_t r = 0; r < 5; ++r) {
          for (std::int64_t c = 0; c < k; ++c) x.at(r, c) = sign * 3.0f;  // all +-127
        }
        Matrix out(5, 32);
        ops_->Matmul(Product(x, packed, out), {});
        Matrix expected = ExpectedProduct(parts, x, ActivationType::kInt8);
        ExpectSameBits(out, expected);
      }
    }
  }
}

TEST_P(MatmulTest, ANanInOneRowStaysThereAndTinyBlocksCountAsZero) {
  for (const ElementType format : kAllElementTypes) {
    const std::int64_t k = std::max<std::int64_t>(64, BlockColumns(format));
    const std::vector<Source> parts = {MakeSource(format, 33, k, random_)};
    const Packed packed = PackParts(parts, WeightRole::kDown, ActivationType::kInt8);
    Matrix x(6, k);
    FillNormal(x, random_);
    x.at(1, 40) = std::nanf("");
    x.at(3, 2) = -std::numeric_limits<float>::infinity();
    for (std::int64_t c = 0; c < 32; ++c) x.at(4, c) = 0x1p-101f;
    for (std::int64_t c = 0; c < 32; ++c) x.at(5, c) = 0x1p-100f;
    Matrix out(6, 33);
    ops_->Matmul(Product(x, packed, out), {});
    Matrix expected = ExpectedProduct(parts, x, ActivationType::kInt8);
    ExpectSameBits(out, expected);
  }
}

TEST_P(MatmulTest, PartsOfMixedFormatsAreOneProductAndCanBeAdded) {
  const std::vector<Source> parts = {MakeSource(ElementType::kQ4_1, 70, 64, random_),
                                     MakeSource(ElementType::kF32, 32, 64, random_),
                                     MakeSource(ElementType::kQ8_0, 1, 64, random_)};
  const Packed packed = PackParts(parts, WeightRole::kQkv, ActivationType::kInt8);
  Matrix x(9, 64);
  FillNormal(x, random_);
  Matrix out(9, 103);
  FillNormal(out, random_);
  Matrix expected = ExpectedProduct(parts, x, ActivationType::kInt8);
  for (std::int64_t r = 0; r < 9; ++r) {
    for (std::int64_t c = 0; c < 103; ++c) expected.at(r, c) = out.at(r, c) + expected.at(r, c);
  }
  MatmulParams product = Product(x, packed, out);
  product.output = MatmulOutput::kAdd;
  ops_->Matmul(product, {});
  ExpectSameBits(out, expected);
}

TEST_P(MatmulTest, CompositeOpsEqualTheirPrimitives) {
  const std::vector<Source> parts = {MakeSource(ElementType::kQ4_1, 75, 96, random_),
                                     MakeSource(ElementType::kQ4_1, 75, 96, random_)};
  const Packed packed = PackParts(parts, WeightRole::kGateUp, ActivationType::kInt8);
  const std::vector<float> weight(96, 0.75f);
  for (const std::int64_t num_rows : {1, 3, 130}) {
    Matrix in(num_rows, 96), normed(num_rows, 96), gate_up(num_rows, 150), out(num_rows, 75);
    Matrix expected_gate_up(num_rows, 150), expected(num_rows, 75);
    FillNormal(in, random_);
    const RmsNormParams norm = {.in = in.view(), .weight = weight, .out = normed.view()};
    const MatmulParams product = Product(normed, packed, gate_up);
    ops_->RmsNorm(norm, {});
    ops_->Matmul(Product(normed, packed, expected_gate_up), {});
    ops_->SiluMul({.gate_up = expected_gate_up.view(), .out = expected.view()}, {});

    ops_->NormMatmul({.norm = norm, .matmul = product}, {});
    ExpectSameBits(gate_up, expected_gate_up);
    ops_->GateUp({.norm = norm, .gate_up = product, .out = out.view()}, {});
    ExpectSameBits(out, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, MatmulTest, testing::ValuesIn(AllSettings()), SettingName);

}  // namespace
}  // namespace pagoda::kernels::cpu
