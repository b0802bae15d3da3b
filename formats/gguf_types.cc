#include "formats/gguf_types.h"

#include <array>

namespace pagoda::formats {
namespace {

constexpr std::array kTypes = {
    GgufTypeInfo{0, "F32", 1, 4},         GgufTypeInfo{1, "F16", 1, 2},
    GgufTypeInfo{2, "Q4_0", 32, 18},      GgufTypeInfo{3, "Q4_1", 32, 20},
    GgufTypeInfo{6, "Q5_0", 32, 22},      GgufTypeInfo{7, "Q5_1", 32, 24},
    GgufTypeInfo{8, "Q8_0", 32, 34},      GgufTypeInfo{9, "Q8_1", 32, 36},
    GgufTypeInfo{10, "Q2_K", 256, 84},    GgufTypeInfo{11, "Q3_K", 256, 110},
    GgufTypeInfo{12, "Q4_K", 256, 144},   GgufTypeInfo{13, "Q5_K", 256, 176},
    GgufTypeInfo{14, "Q6_K", 256, 210},   GgufTypeInfo{15, "Q8_K", 256, 292},
    GgufTypeInfo{16, "IQ2_XXS", 256, 66}, GgufTypeInfo{17, "IQ2_XS", 256, 74},
    GgufTypeInfo{18, "IQ3_XXS", 256, 98}, GgufTypeInfo{19, "IQ1_S", 256, 50},
    GgufTypeInfo{20, "IQ4_NL", 32, 18},   GgufTypeInfo{21, "IQ3_S", 256, 110},
    GgufTypeInfo{22, "IQ2_S", 256, 82},   GgufTypeInfo{23, "IQ4_XS", 256, 136},
    GgufTypeInfo{24, "I8", 1, 1},         GgufTypeInfo{25, "I16", 1, 2},
    GgufTypeInfo{26, "I32", 1, 4},        GgufTypeInfo{27, "I64", 1, 8},
    GgufTypeInfo{28, "F64", 1, 8},        GgufTypeInfo{29, "IQ1_M", 256, 56},
    GgufTypeInfo{30, "BF16", 1, 2},       GgufTypeInfo{34, "TQ1_0", 256, 54},
    GgufTypeInfo{35, "TQ2_0", 256, 66},   GgufTypeInfo{39, "MXFP4", 32, 17},
};

}  // namespace

std::optional<GgufTypeInfo> FindGgufType(std::uint32_t number) {
  for (const GgufTypeInfo& type : kTypes) {
    if (type.number == number) return type;
  }
  return std::nullopt;
}

}  // namespace pagoda::formats
