#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::formats {

// Tensor types by their GGUF number, as far as Pagoda computes with them; gguf_types.h knows the
// names of the others. A file with any other is refused by the loader, by name where one is known.
enum class GgufType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBf16 = 30,
};

struct GgufArray;
// Integers are widened; arrays keep one element type.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view,
                               std::shared_ptr<const GgufArray>>;
struct GgufArray {
  std::variant<std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>,
               std::vector<bool>, std::vector<std::string_view>>
      values;
};

struct GgufTensor {
  std::string_view name;
  std::uint32_t type = 0;            // GgufType, or a number we do not know
  std::vector<std::uint64_t> shape;  // as in the file: the fastest dimension first
  // Inside the mapping; exactly the size that type and shape ask for. Empty for a type of unknown
  // layout.
  std::span<const std::byte> data;
};

// A GGUF file (version 2 or 3), mapped read-only and checked whole before anything is returned:
// magic, version, counts (bounded), every length and offset inside the file, alignment, no overlap,
// no unclaimed bytes, no duplicate name. Views live as long as this. Lookups are binary searches
// over a sorted index: no input can make them slow. Errors: NotFound (no file), InvalidArgument
// (what, at which offset, expected, found). Threads: const after Open, any.
class GgufFile {
 public:
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);
  // The same over bytes already in memory, which must outlive the result; `name` stands for the
  // path in messages.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(std::span<const std::byte> bytes,
                                                         const std::string& name);
  struct State;
  explicit GgufFile(std::unique_ptr<State> state);  // for Parse
  ~GgufFile();

  // Null when absent.
  const GgufValue* Find(std::string_view key) const;
  // Typed access: InvalidArgument with the key and the type found when absent or of another type.
  absl::StatusOr<std::string_view> String(std::string_view key) const;
  absl::StatusOr<std::uint64_t> Unsigned(std::string_view key) const;  // any integer >= 0
  absl::StatusOr<double> Float(std::string_view key) const;
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<std::span<const std::string_view>> Strings(std::string_view key) const;
  absl::StatusOr<std::span<const double>> Floats(std::string_view key) const;
  // Any integer element type; copied, because signed and unsigned arrays are kept apart. A negative
  // element is refused.
  absl::StatusOr<std::vector<std::uint64_t>> Unsigneds(std::string_view key) const;

  // In file order.
  std::span<const std::pair<std::string_view, GgufValue>> metadata() const;
  std::span<const GgufTensor> tensors() const;
  const GgufTensor* FindTensor(std::string_view name) const;
  const std::string& path() const;

  static constexpr std::uint64_t kMaxMetadataEntries = 1 << 16;
  static constexpr std::uint64_t kMaxTensors = 1 << 16;
  static constexpr std::uint64_t kMaxArrayElements = 1 << 24;  // over all arrays of a file
  static constexpr std::uint32_t kMaxDimensions = 4;
  static constexpr std::uint64_t kMaxNameBytes = 256;  // of a key or a tensor name

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::formats
