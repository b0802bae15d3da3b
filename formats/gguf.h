#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::formats {

// Tensor types by their GGUF number. A file with any other is refused by the loader, by name where one is known.
enum class GgufType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
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
  std::uint32_t type = 0;             // GgufType, or a number we do not know
  std::vector<std::uint64_t> shape;   // as in the file: the fastest dimension first
  std::span<const std::byte> data;    // inside the mapping; exactly the size that type and shape ask for
};

// A GGUF file (version 2 or 3), mapped read-only and checked whole before anything is returned: magic, version, counts
// (bounded), every length and offset inside the file, alignment, no overlap, no duplicate name. Views live as long as this.
// Errors: NotFound (no file), InvalidArgument (what, at which offset, expected, found). Threads: const after Open, any.
class GgufFile {
 public:
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);
  ~GgufFile();

  // Null when absent.
  const GgufValue* Find(std::string_view key) const;
  // Typed access: InvalidArgument with the key and the type found when absent or of another type.
  absl::StatusOr<std::string_view> String(std::string_view key) const;
  absl::StatusOr<std::uint64_t> Unsigned(std::string_view key) const;  // any integer >= 0
  absl::StatusOr<double> Float(std::string_view key) const;
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<std::span<const std::string_view>> Strings(std::string_view key) const;

  // In file order.
  std::span<const std::pair<std::string_view, GgufValue>> metadata() const;
  std::span<const GgufTensor> tensors() const;
  const GgufTensor* FindTensor(std::string_view name) const;
  const std::string& path() const;

 private:
  struct State;
  explicit GgufFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::formats
