#include "server/config/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "server/config/byte_size.h"

namespace pagoda::server {
namespace {

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> LeadingNumber(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> MeminfoAvailable(const std::string& root) {
  const std::optional<std::string> text = ReadText(root + "/proc/meminfo");
  if (!text) return std::nullopt;
  constexpr std::string_view kKey = "MemAvailable:";
  const std::size_t at = text->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digits = text->find_first_of("0123456789", at + kKey.size());
  if (digits == std::string::npos) return std::nullopt;
  const std::optional<std::int64_t> kib = LeadingNumber(text->substr(digits));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

// The tightest limit on the way from this process's control group (version 2) to the root.
std::optional<std::int64_t> CgroupRoom(const std::string& root) {
  const std::optional<std::string> membership = ReadText(root + "/proc/self/cgroup");
  if (!membership || !membership->starts_with("0::")) return std::nullopt;
  std::string folder = membership->substr(3, membership->find('\n') - 3);
  std::optional<std::int64_t> room;
  for (;;) {
    const std::string base = absl::StrCat(root, "/sys/fs/cgroup", folder == "/" ? "" : folder);
    const auto most = ReadText(base + "/memory.max");
    const auto now = ReadText(base + "/memory.current");
    const auto limit = most ? LeadingNumber(*most) : std::nullopt;  // "max": none
    const auto used = now ? LeadingNumber(*now) : std::nullopt;
    if (limit && used) {
      const std::int64_t here = std::max<std::int64_t>(0, *limit - *used);
      room = std::min(room.value_or(std::numeric_limits<std::int64_t>::max()), here);
    }
    if (folder.empty() || folder == "/") return room;
    folder.resize(folder.find_last_of('/'));
  }
}

}  // namespace

absl::StatusOr<std::int64_t> AvailableMemory(const std::string& root) {
  const std::optional<std::int64_t> machine = MeminfoAvailable(root);
  if (!machine) {
    return absl::UnavailableError(
        "cannot read MemAvailable from /proc/meminfo; set --kv-cache-memory to a size");
  }
  return std::min(*machine, CgroupRoom(root).value_or(*machine));
}

absl::StatusOr<KvMemoryAnswer> ChooseKvMemory(const KvMemoryQuestion& question) {
  const bool is_auto = !question.asked_bytes.has_value();
  const auto share =
      static_cast<std::int64_t>(static_cast<double>(question.available_bytes) * kAutoShare);
  const std::int64_t bytes = question.asked_bytes.value_or(share);
  const std::int64_t usable_blocks = question.blocks_per_full_request * question.max_num_seqs;
  std::int64_t num_blocks = bytes / question.bytes_per_block;
  if (is_auto) num_blocks = std::min(num_blocks, usable_blocks + 1);
  num_blocks = std::min<std::int64_t>(num_blocks, std::numeric_limits<std::int32_t>::max());

  const std::string numbers = absl::StrCat(
      is_auto ? absl::StrCat("auto: ", kAutoShare * 100, " % of ",
                             FormatBytes(question.available_bytes), " available after the weights")
              : absl::StrCat("--kv-cache-memory: ", FormatBytes(bytes)),
      "; ", question.bytes_per_block, " bytes per block, ", question.blocks_per_full_request,
      " blocks for a request of full length");
  if (num_blocks < question.blocks_per_full_request + 1) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the KV pool would have ", std::max<std::int64_t>(num_blocks, 0),
        " blocks, one full-length request needs ", question.blocks_per_full_request,
        " and the null block (", numbers,
        "); lower --max-model-len or raise --kv-cache-memory to at least ",
        FormatBytes((question.blocks_per_full_request + 1) * question.bytes_per_block)));
  }
  if (!is_auto && bytes > question.available_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--kv-cache-memory asks for ", FormatBytes(bytes), ", ",
                     FormatBytes(question.available_bytes),
                     " are available after the weights; lower it, or free memory"));
  }
  return KvMemoryAnswer{
      .num_blocks = static_cast<std::int32_t>(num_blocks),
      .explanation =
          absl::StrCat("KV pool of ", num_blocks, " blocks, ",
                       FormatBytes(num_blocks * question.bytes_per_block), " (", numbers, ")")};
}

}  // namespace pagoda::server
