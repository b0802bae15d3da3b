#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace pagoda::formats {

// A whole regular file mapped read-only. Move-only; unmapped by the destructor. A file that another
// process cuts while it is mapped ends this process (SIGBUS): replace model files by renaming,
// never in place. Threads: const after Open, any.
class FileMapping {
 public:
  // NotFound, PermissionDenied, or InvalidArgument (not a regular file, empty); the message names
  // the path.
  static absl::StatusOr<FileMapping> Open(const std::string& path);

  FileMapping() = default;
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit FileMapping(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace pagoda::formats
