#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::formats {

struct SafetensorsTensor {
  std::string_view name;
  std::string_view type;             // as the file writes it: "F32", "BF16", "I64"
  std::vector<std::uint64_t> shape;  // the fastest dimension last; empty for a scalar
  std::span<const std::byte> data;   // inside the mapping; exactly the size of type and shape
};

// One safetensors file, mapped read-only and checked whole before anything is returned: the header
// inside the file and below its cap, JSON without twin keys, every type known, every range of the
// size that type and shape ask for, and the ranges side by side from the header's end to the file's
// end, without overlap or gap. The tensors' bytes are not read. Views live as long as this.
// Threads: const after Open, any. Errors: NotFound (no file), InvalidArgument (file, tensor, found,
// expected).
class SafetensorsFile {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  // The same over bytes already in memory, which must outlive the result; `name` stands for the
  // path in messages.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Parse(std::span<const std::byte> bytes,
                                                                const std::string& name);
  struct State;
  explicit SafetensorsFile(std::unique_ptr<State> state);  // for Parse
  ~SafetensorsFile();

  // In the order of their bytes.
  std::span<const SafetensorsTensor> tensors() const;
  const SafetensorsTensor* FindTensor(std::string_view name) const;  // null when absent
  const std::string& path() const;

  static constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
  static constexpr std::uint64_t kMaxTensors = 1 << 16;
  static constexpr std::uint32_t kMaxDimensions = 8;
  static constexpr std::uint64_t kMaxNameBytes = 1024;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::formats
