#include "kernels/emulation/bank_watch.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "kernels/emulation/shared_access.h"

namespace pagoda::kernels::emulation {
namespace {

constexpr std::uint32_t kBanks = 32, kWordBytes = 4, kLanes = 32;
constexpr std::uint32_t kBytesPerPass = kBanks * kWordBytes;

constinit thread_local BankWatch* watch = nullptr;

using Access = BankWatch::Access;

std::string_view NameOf(const char* file) {
  const std::string_view path(file);
  return path.substr(path.rfind('/') + 1);
}

// Equal for what one warp did at one place: file, line, CTA, warp.
auto WarpOf(const Access& access) {
  return std::tuple(NameOf(access.site.file), access.site.line, access.cta, access.thread / kLanes);
}

// Passes beyond the first of lanes that are served together.
std::uint64_t ConflictsOf(std::span<const Access* const> lanes) {
  std::array<std::vector<std::uint32_t>, kBanks> words;
  std::size_t passes = 1;
  for (const Access* const access : lanes) {
    const std::uint32_t last = (access->offset + access->bytes - 1) / kWordBytes;
    for (std::uint32_t word = access->offset / kWordBytes; word <= last; ++word) {
      std::vector<std::uint32_t>& of_bank = words[word % kBanks];
      if (std::ranges::find(of_bank, word) == of_bank.end()) of_bank.push_back(word);
      passes = std::max(passes, of_bank.size());
    }
  }
  return passes - 1;
}

// Of one access of a warp, lanes ascending.
std::uint64_t ConflictsOfWarp(std::span<const Access* const> lanes) {
  const std::uint32_t bytes = std::max(lanes.front()->bytes, kWordBytes);
  const std::uint32_t together = kBytesPerPass / bytes;
  std::uint64_t conflicts = 0;
  for (auto first = lanes.begin(); first != lanes.end();) {
    const std::uint32_t turn = (*first)->thread % kLanes / together;
    const auto end = std::find_if(first, lanes.end(), [&](const Access* access) {
      return access->thread % kLanes / together != turn;
    });
    conflicts += ConflictsOf({first, end});
    first = end;
  }
  return conflicts;
}

// All that one warp did at one place, each lane in its order: added to the place.
void AddWarp(std::span<const Access* const> all, BankWatch::Place& place) {
  std::array<std::vector<const Access*>, kLanes> lanes;
  for (const Access* const access : all) lanes[access->thread % kLanes].push_back(access);
  for (std::size_t time = 0;; ++time) {
    std::vector<const Access*> together;
    for (const auto& lane : lanes) {
      if (time < lane.size()) together.push_back(lane[time]);
    }
    if (together.empty()) return;
    ++place.accesses;
    place.conflicts += ConflictsOfWarp(together);
  }
}

}  // namespace

BankWatch::BankWatch() {
  PAGODA_CHECK(watch == nullptr);
  watch = this;
}
BankWatch::~BankWatch() { watch = nullptr; }

std::vector<BankWatch::Place> BankWatch::Places() const {
  std::map<decltype(WarpOf({})), std::vector<const Access*>> of_warps;
  for (const Access& access : accesses_) of_warps[WarpOf(access)].push_back(&access);
  std::vector<Place> places;
  for (const auto& [warp, accesses] : of_warps) {
    const std::string file(std::get<0>(warp));
    const int line = std::get<1>(warp);
    if (places.empty() || places.back().line != line || places.back().file != file) {
      places.push_back({.file = file, .line = line});
    }
    AddWarp(accesses, places.back());
  }
  return places;
}

void NoteShared(const void* address, std::size_t count, CallSite site) {
  CheckShared(address, count, count, site);
  if (watch == nullptr) return;
  const ThreadPlace& place = Self();
  const Index3& cta = place.cta;
  const auto offset = static_cast<const std::byte*>(address) - place.shared;
  watch->Note({.site = site,
               .cta = (std::uint64_t{cta.z} * place.grid.y + cta.y) * place.grid.x + cta.x,
               .thread = place.thread,
               .offset = static_cast<std::uint32_t>(offset),
               .bytes = static_cast<std::uint32_t>(count)});
}

}  // namespace pagoda::kernels::emulation
