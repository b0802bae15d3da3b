#include "model/kv_memory.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"

namespace pagoda::model {

using base::FormatBytes;

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
        base::FormatBytesUp((question.blocks_per_full_request + 1) * question.bytes_per_block)));
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

}  // namespace pagoda::model
