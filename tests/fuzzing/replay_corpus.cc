// Runs a fuzzer's entry over the files of its corpus and over seeded changes of them, so that every
// build tries the parsers a little; libFuzzer itself (preset `fuzz`) goes on from the same files.
//   replay_corpus FOLDER

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/counter_rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kSeed = 4;
constexpr std::uint32_t kChangesPerFile = 150;
// Bytes at which lengths, signs and texts turn over.
constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '{', '[', '%', '\\'};

// A few changes of one kind each: a byte, a bit, a cut, a piece written once more, a piece taken
// out.
Bytes Changed(const Bytes& original, std::uint32_t file, std::uint32_t change) {
  Bytes bytes = original;
  std::uint32_t counter = 0;
  const auto draw = [&](std::size_t below) {
    const std::uint32_t word = pagoda::base::Philox4x32({counter++, file, change, 0}, kSeed)[0];
    return below == 0 ? 0 : word % below;
  };
  for (std::size_t left = 1 + draw(3); left > 0; --left) {
    const std::size_t place = draw(bytes.size());
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(place);
    const auto end = begin + static_cast<std::ptrdiff_t>(
                                 std::min<std::size_t>(bytes.size() - place, 1 + draw(16)));
    switch (bytes.empty() ? 3 : draw(5)) {
      case 0:
        bytes[place] = kEdges[draw(std::size(kEdges))];
        break;
      case 1:
        bytes[place] ^= static_cast<std::uint8_t>(1u << draw(8));
        break;
      case 2:
        bytes.erase(begin, end);
        break;
      case 3: {
        const Bytes piece(begin, end);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(draw(bytes.size() + 1)),
                     piece.begin(), piece.end());
        break;
      }
      default:
        bytes.resize(place);
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) return 2;
  std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (std::uint32_t file = 0; file < paths.size(); ++file) {
    std::fprintf(stderr, "%s\n", paths[file].filename().c_str());
    std::ifstream stream(paths[file], std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (std::uint32_t change = 0; change < kChangesPerFile; ++change) {
      const Bytes changed = Changed(bytes, file, change);
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
  }
  return 0;
}
