#include "formats/safetensors_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/json_document.h"

namespace pagoda::formats {
namespace {

using base::ToAbsl;

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kWeightSuffix = ".safetensors";
// Some folders carry the same weights once more in their maker's own naming.
constexpr std::string_view kOtherNaming = "consolidated";

std::string PathIn(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).string();
}

// The names of weight files that must be accounted for, sorted.
absl::StatusOr<std::vector<std::string>> ListWeightFiles(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  std::vector<std::string> names;
  while (!error && entry != std::filesystem::directory_iterator()) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(kWeightSuffix) && !name.starts_with(kOtherNaming)) {
      names.push_back(std::move(name));
    }
    entry.increment(error);
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(directory, ": cannot be listed: ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What the index says, as strings of its own.
struct Index {
  std::string path;
  std::map<std::string, std::string> shard_of;  // by tensor
  std::set<std::string> shards;
  std::optional<std::uint64_t> total_bytes;
};

absl::Status Refused(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", ToAbsl(why)));
}

// A shard's name comes from a file that someone else wrote: it must not lead out of the folder.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

absl::Status ReadTotal(const JsonValue& root, Index& index) {
  const auto metadata = root.Find("metadata");
  if (!metadata.has_value()) return absl::OkStatus();
  const auto total = metadata->Find("total_size");
  if (!total.has_value()) return absl::OkStatus();
  index.total_bytes = total->AsUnsigned();
  // Some writers put a whole number down as 1.0e9.
  if (const auto number = total->AsNumber();
      !index.total_bytes.has_value() && number.has_value() && *number >= 0 && *number < 0x1p53) {
    index.total_bytes = static_cast<std::uint64_t>(*number);
  }
  if (index.total_bytes.has_value()) return absl::OkStatus();
  return Refused(index.path, "metadata.total_size is not a whole number from 0 on");
}

absl::StatusOr<Index> ReadIndex(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const auto document, JsonDocument::Open(path));
  Index index;
  index.path = path;
  const JsonValue root = document->root();
  PAGODA_RETURN_IF_ERROR(ReadTotal(root, index));
  const auto weights = root.Find("weight_map");
  if (!weights.has_value() || weights->Members().empty()) {
    return Refused(path, "has no weight_map with the place of each tensor");
  }
  for (const JsonMember& member : weights->Members()) {
    const auto shard = member.value.AsString();
    if (!shard.has_value() || !IsPlainName(*shard)) {
      return Refused(path, absl::StrCat("places tensor '", ToAbsl(member.key),
                                        "' in something that is no file name"));
    }
    index.shard_of.emplace(member.key, *shard);
    index.shards.emplace(*shard);
  }
  if (index.shards.size() <= SafetensorsFolder::kMaxShards) return index;
  return Refused(path, absl::StrCat("names ", index.shards.size(), " shards; the limit is ",
                                    SafetensorsFolder::kMaxShards));
}

absl::Status RefuseStrayFiles(const std::vector<std::string>& present, const Index& index,
                              const std::string& directory) {
  for (const std::string& name : present) {
    if (index.shards.contains(name)) continue;
    return Refused(PathIn(directory, name),
                   absl::StrCat("is a weight file that ", ToAbsl(kIndexName),
                                " does not name; it names ", index.shards.size(), " others"));
  }
  return absl::OkStatus();
}

// Every tensor of the shard stands in the index at this shard; the index's others are found missing
// by count.
absl::Status CheckShard(const SafetensorsFile& file, const std::string& shard, const Index& index,
                        std::map<std::string_view, std::string_view>& seen) {
  std::size_t num_expected = 0;
  for (const auto& [tensor, place] : index.shard_of) num_expected += place == shard;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    const auto [other, is_new] = seen.emplace(tensor.name, shard);
    if (!is_new) {
      return Refused(file.path(), absl::StrCat("holds tensor '", ToAbsl(tensor.name), "', which ",
                                               ToAbsl(other->second), " holds too"));
    }
    const auto place = index.shard_of.find(std::string(tensor.name));
    if (place == index.shard_of.end()) {
      return Refused(file.path(), absl::StrCat("holds tensor '", ToAbsl(tensor.name), "', which ",
                                               ToAbsl(kIndexName), " does not name"));
    }
    if (place->second != shard) {
      return Refused(file.path(), absl::StrCat("holds tensor '", ToAbsl(tensor.name), "', which ",
                                               ToAbsl(kIndexName), " places in ", place->second));
    }
  }
  if (file.tensors().size() == num_expected) return absl::OkStatus();
  for (const auto& [tensor, place] : index.shard_of) {
    if (place != shard || file.FindTensor(tensor) != nullptr) continue;
    return Refused(file.path(), absl::StrCat("lacks tensor '", tensor, "', which ",
                                             ToAbsl(kIndexName), " places here"));
  }
  return absl::OkStatus();
}

absl::Status CheckTotal(std::span<const std::unique_ptr<SafetensorsFile>> files,
                        const Index& index) {
  if (!index.total_bytes.has_value()) return absl::OkStatus();
  std::uint64_t total = 0;
  for (const auto& file : files) {
    for (const SafetensorsTensor& tensor : file->tensors()) total += tensor.data.size();
  }
  if (total == *index.total_bytes) return absl::OkStatus();
  return Refused(index.path,
                 absl::StrCat("says total_size ", *index.total_bytes, ", but the tensors of its ",
                              files.size(), " shards take ", total, " bytes"));
}

absl::StatusOr<std::vector<std::unique_ptr<SafetensorsFile>>> OpenShards(
    const std::string& directory, const std::vector<std::string>& present) {
  PAGODA_ASSIGN_OR_RETURN(const Index index, ReadIndex(PathIn(directory, kIndexName)));
  for (const std::string& shard : index.shards) {
    if (std::find(present.begin(), present.end(), shard) != present.end()) continue;
    return Refused(PathIn(directory, shard),
                   absl::StrCat("is missing; ", ToAbsl(kIndexName), " names it, one of ",
                                index.shards.size(), " shards; fetch it too"));
  }
  PAGODA_RETURN_IF_ERROR(RefuseStrayFiles(present, index, directory));
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::map<std::string_view, std::string_view> seen;
  for (const std::string& shard : index.shards) {
    PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                            SafetensorsFile::Open(PathIn(directory, shard)));
    PAGODA_RETURN_IF_ERROR(CheckShard(*file, shard, index, seen));
    files.push_back(std::move(file));
  }
  PAGODA_RETURN_IF_ERROR(CheckTotal(files, index));
  return files;
}

}  // namespace

SafetensorsFolder::SafetensorsFolder(std::vector<std::unique_ptr<SafetensorsFile>> files)
    : files_(std::move(files)) {
  for (const auto& file : files_) {
    for (const SafetensorsTensor& tensor : file->tensors()) tensors_.push_back(&tensor);
  }
}

absl::StatusOr<std::unique_ptr<SafetensorsFolder>> SafetensorsFolder::Open(
    const std::string& directory) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string> present, ListWeightFiles(directory));
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  if (std::filesystem::exists(PathIn(directory, kIndexName))) {
    PAGODA_ASSIGN_OR_RETURN(files, OpenShards(directory, present));
  } else if (present.empty()) {
    return absl::NotFoundError(absl::StrCat(directory, ": has neither ", ToAbsl(kSingleName),
                                            " nor ", ToAbsl(kIndexName)));
  } else if (present.size() > 1 || present.front() != kSingleName) {
    return Refused(directory,
                   absl::StrCat("has ", present.size(), " weight files, '", present.front(),
                                "' among them, but no ", ToAbsl(kIndexName),
                                " that says how they belong together"));
  } else {
    PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                            SafetensorsFile::Open(PathIn(directory, kSingleName)));
    files.push_back(std::move(file));
  }
  return std::make_unique<SafetensorsFolder>(std::move(files));
}

}  // namespace pagoda::formats
