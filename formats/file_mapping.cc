#include "formats/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pagoda::formats {
namespace {

absl::Status CannotOpen(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": cannot be opened: ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::InvalidArgumentError(message);
}

// Requires: `file` is open. The mapping outlives the descriptor.
absl::StatusOr<std::span<const std::byte>> Map(const std::string& path, int file) {
  struct stat info{};
  if (fstat(file, &info) != 0) return CannotOpen(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  }
  if (info.st_size <= 0)
    return absl::InvalidArgumentError(absl::StrCat(path, ": is empty; fetch the file again"));
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": ", size, " bytes cannot be mapped: ", std::strerror(errno)));
  }
  return std::span(static_cast<const std::byte*>(address), size);
}

}  // namespace

absl::StatusOr<FileMapping> FileMapping::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return CannotOpen(path, errno);
  auto bytes = Map(path, file);
  close(file);
  if (!bytes.ok()) return bytes.status();
  return FileMapping(*bytes);
}

FileMapping::FileMapping(FileMapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

FileMapping::~FileMapping() {
  if (bytes_.empty()) return;
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace pagoda::formats
