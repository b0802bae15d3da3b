// The Device of the process itself: memory from anonymous mappings, transfers done at once.
#include <sys/mman.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/device.h"

namespace pagoda::kernels {
namespace {

class HostDevice : public Device {
 public:
  bool is_host() const override { return true; }

  absl::StatusOr<DeviceMemory> Allocate(std::int64_t bytes) override {
    PAGODA_CHECK(bytes > 0);
    void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the system refused ", bytes, " bytes of memory; free some or ask for less"));
    }
    // Large pages, where the system gives them; the answer does not matter.
    (void)madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
    return DeviceMemory(this, static_cast<std::byte*>(data), bytes);
  }

  void Copy(std::byte* target, const std::byte* source, std::int64_t bytes,
            Stream /*stream*/) override {
    std::memmove(target, source, static_cast<std::size_t>(bytes));
  }
  void Fill(std::byte* target, std::byte value, std::int64_t bytes, Stream /*stream*/) override {
    std::memset(target, std::to_integer<int>(value), static_cast<std::size_t>(bytes));
  }

  void Launch(const KernelLaunch& /*launch*/, Stream /*stream*/) override {
    PAGODA_CHECK_MSG(false, "the host's ops are plain code: there is nothing to launch");
  }

  Event Record(Stream /*stream*/) override { return {}; }
  bool IsDone(Event /*event*/) override { return true; }
  absl::Status Await(Event /*event*/) override { return absl::OkStatus(); }

 private:
  void Release(std::byte* data, std::int64_t bytes) override {
    PAGODA_CHECK(munmap(data, static_cast<std::size_t>(bytes)) == 0);
  }
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice() { return std::make_unique<HostDevice>(); }

}  // namespace pagoda::kernels
