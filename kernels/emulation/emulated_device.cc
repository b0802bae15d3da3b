#include "kernels/emulation/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/emulation/emulated_kernels.h"
#include "kernels/emulation/exact_memory.h"

namespace pagoda::kernels::emulation {
namespace {

constexpr std::uint32_t kMaxGridSide = 65'535;  // of y and z

struct CopyWork {
  std::byte* target;
  const std::byte* source;
  std::int64_t bytes;
};
struct FillWork {
  std::byte* target;
  std::byte value;
  std::int64_t bytes;
};
struct LaunchWork {
  KernelLaunch launch;
  std::vector<std::byte> arguments;
};
using Work = std::variant<CopyWork, FillWork, LaunchWork>;

class PlainEmulatedDevice final : public EmulatedDevice {
 public:
  explicit PlainEmulatedDevice(const EmulatedDeviceOptions& options) : options_(options) {}
  ~PlainEmulatedDevice() override {
    PAGODA_CHECK_MSG(memories_.empty(), "memory of the device outlives it");
  }

  bool is_host() const override { return true; }

  absl::StatusOr<DeviceMemory> Allocate(std::int64_t bytes) override;

  void Copy(std::byte* target, const std::byte* source, std::int64_t bytes,
            Stream /*stream*/) override {
    work_.emplace_back(CopyWork{target, source, bytes});
  }
  void Fill(std::byte* target, std::byte value, std::int64_t bytes, Stream /*stream*/) override {
    work_.emplace_back(FillWork{target, value, bytes});
  }
  void Launch(const KernelLaunch& launch, Stream /*stream*/) override {
    LaunchWork work{launch, {launch.arguments.begin(), launch.arguments.end()}};
    work.launch.arguments = {};
    work_.emplace_back(std::move(work));
  }

  Event Record(Stream /*stream*/) override { return {num_done_ + work_.size()}; }
  bool IsDone(Event event) override { return event.value <= num_done_; }
  absl::Status Await(Event event) override;

  const Counters& counters() const override { return emulator_.counters(); }
  void SetSchedule(const Schedule& schedule) override;

 private:
  void Release(std::byte* data, std::int64_t bytes) override;
  // A planted fault that leaves its memory shows in the outcome; the sanitizer would end the
  // program.
  bool IsSound() const { return options_.schedule.planted_fault == 0; }
  absl::Status Check(const LaunchWork& work) const;
  absl::Status Run(const LaunchWork& work);
  absl::Status CheckMemories(const char* kernel) const;
  absl::Status Run(const CopyWork& work) {
    std::memmove(work.target, work.source, static_cast<std::size_t>(work.bytes));
    return absl::OkStatus();
  }
  absl::Status Run(const FillWork& work) {
    std::memset(work.target, std::to_integer<int>(work.value),
                static_cast<std::size_t>(work.bytes));
    return absl::OkStatus();
  }

  EmulatedDeviceOptions options_;
  Emulator emulator_;
  std::deque<Work> work_;
  std::uint64_t num_done_ = 0;
  absl::Status error_;  // the first; kept
  std::map<std::byte*, ExactMemory> memories_;
};

absl::StatusOr<DeviceMemory> PlainEmulatedDevice::Allocate(std::int64_t bytes) {
  PAGODA_CHECK(bytes > 0);
  std::optional<ExactMemory> memory = ExactMemory::Map(static_cast<std::size_t>(bytes));
  if (!memory.has_value()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system refused ", bytes, " bytes for the emulated device; free some or ask for less"));
  }
  memory->SetForbidden(IsSound());
  std::byte* const data = memory->bytes().data();
  memories_.emplace(data, *std::move(memory));
  return DeviceMemory(this, data, bytes);
}

void PlainEmulatedDevice::SetSchedule(const Schedule& schedule) {
  options_.schedule = schedule;
  for (const auto& [data, memory] : memories_) memory.SetForbidden(IsSound());
}

void PlainEmulatedDevice::Release(std::byte* data, std::int64_t /*bytes*/) {
  PAGODA_CHECK_MSG(work_.empty() || !error_.ok(), "memory was freed with work pending");
  PAGODA_CHECK(memories_.erase(data) == 1);
}

absl::Status PlainEmulatedDevice::Await(Event event) {
  while (error_.ok() && num_done_ < event.value) {
    error_ = std::visit([this](const auto& work) { return Run(work); }, work_.front());
    work_.pop_front();
    ++num_done_;
  }
  return error_;
}

absl::Status PlainEmulatedDevice::Check(const LaunchWork& work) const {
  const KernelLaunch& launch = work.launch;
  if (launch.kernel >= cuda::kNumKernels) {
    return absl::InternalError(absl::StrCat("launch of kernel ", launch.kernel, ", which is none"));
  }
  const cuda::KernelInfo& info = cuda::kKernels[launch.kernel];
  const auto wrong = [&info](const auto&... what) {
    return absl::InternalError(absl::StrCat("launch of ", info.name, ": ", what...));
  };
  for (const std::uint32_t side : launch.grid) {
    if (side == 0) return wrong("a grid without a CTA");
  }
  if (std::max(launch.grid[1], launch.grid[2]) > kMaxGridSide) {
    return wrong("a grid of ", launch.grid[1], " by ", launch.grid[2], " in y and z; at most ",
                 kMaxGridSide);
  }
  if (launch.num_threads != info.num_threads) {
    return wrong(launch.num_threads, " threads; it was built for ", info.num_threads);
  }
  if (launch.shared_bytes != info.shared_bytes) {
    return wrong(launch.shared_bytes, " bytes of shared memory; it needs ", info.shared_bytes);
  }
  if (launch.shared_bytes > options_.max_shared_bytes) {
    return wrong(launch.shared_bytes, " bytes of shared memory; the device has ",
                 options_.max_shared_bytes);
  }
  if (work.arguments.size() != info.argument_bytes) {
    return wrong(work.arguments.size(), " bytes of arguments; it takes ", info.argument_bytes);
  }
  return absl::OkStatus();
}

absl::Status PlainEmulatedDevice::Run(const LaunchWork& work) {
  if (absl::Status wrong = Check(work); !wrong.ok()) return wrong;
  const KernelLaunch& launch = work.launch;
  const cuda::KernelInfo& info = cuda::kKernels[launch.kernel];
  absl::Status done = emulator_.Run({.kernel = KernelOf(info.id),
                                     .arguments = work.arguments.data(),
                                     .grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                                     .num_threads = static_cast<std::uint32_t>(launch.num_threads),
                                     .shared_bytes = static_cast<std::size_t>(launch.shared_bytes),
                                     .name = info.name},
                                    options_.schedule);
  return done.ok() ? CheckMemories(info.name) : done;
}

absl::Status PlainEmulatedDevice::CheckMemories(const char* kernel) const {
  for (const auto& [data, memory] : memories_) {
    if (!memory.IsOverrun()) continue;
    return absl::InternalError(absl::StrCat("kernel ", kernel, ": it wrote past the end of ",
                                            memory.bytes().size(), " bytes of the device"));
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<EmulatedDevice> MakeEmulatedDevice(const EmulatedDeviceOptions& options) {
  return std::make_unique<PlainEmulatedDevice>(options);
}

}  // namespace pagoda::kernels::emulation
