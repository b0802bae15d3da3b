#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/gguf.h"
#include "kernels/tensor_view.h"
#include "model/config.h"

namespace pagoda::model {

// A tensor as the files of a model hold it.
struct StoredTensor {
  std::string_view name;
  std::string type_name;             // as its format calls it: "BF16", "Q4_1"
  std::vector<std::uint64_t> shape;  // of a matrix [outputs, inputs]: the fastest dimension last
  std::span<const std::byte> data;   // row by row; empty for a type of unknown layout
};

// Who named the tensors.
enum class TensorNaming : std::uint8_t { kGguf, kTransformers };

// The files of one model, opened and checked: its configuration and its tensors, by name, whatever
// format they came in. Only headers have been read: the tensors' bytes are mapped and untouched.
// Views live as long as this. Threads: const, any.
class Checkpoint {
 public:
  // `path` is a GGUF file, or a folder with config.json and safetensors. Errors: those of the
  // formats and of ReadConfig; nothing stays open.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);
  // The same over a file that is open already and outlives the result.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Over(const formats::GgufFile& file);

  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);  // for Open and Over
  ~Checkpoint();

  const std::string& path() const;
  const Config& config() const;
  TensorNaming naming() const;
  // In file order.
  std::span<const StoredTensor> tensors() const;
  const StoredTensor* Find(std::string_view name) const;  // null when absent

 private:
  std::unique_ptr<State> state_;
};

// The element type of a tensor, or Unimplemented with the tensor's name and type.
absl::StatusOr<kernels::ElementType> ElementTypeOf(const StoredTensor& tensor);

}  // namespace pagoda::model
