#include "formats/gguf.h"

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/file_mapping.h"
#include "formats/gguf_parser.h"

namespace pagoda::formats {
namespace {

using Index = std::vector<std::uint32_t>;  // positions, sorted by the name that stands there

template <typename Items, typename NameOf>
Index SortedByName(const Items& items, NameOf name_of) {
  Index index(items.size());
  std::iota(index.begin(), index.end(), 0u);
  std::sort(index.begin(), index.end(), [&](std::uint32_t a, std::uint32_t b) {
    return name_of(items[a]) < name_of(items[b]);
  });
  return index;
}

// The position of `name`, or nothing.
template <typename Items, typename NameOf>
const typename Items::value_type* FindByName(const Items& items, const Index& index,
                                             std::string_view name, NameOf name_of) {
  const auto found = std::lower_bound(
      index.begin(), index.end(), name,
      [&](std::uint32_t i, std::string_view wanted) { return name_of(items[i]) < wanted; });
  if (found == index.end() || name_of(items[*found]) != name) return nullptr;
  return &items[*found];
}

template <typename Items, typename NameOf>
absl::Status CheckUnique(const Items& items, const Index& index, NameOf name_of) {
  for (std::size_t i = 1; i < index.size(); ++i) {
    const std::string_view name = name_of(items[index[i]]);
    if (name == name_of(items[index[i - 1]])) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", absl::CHexEscape(base::ToAbsl(name)), "' stands in the file twice"));
    }
  }
  return absl::OkStatus();
}

std::string_view KeyOf(const std::pair<std::string_view, GgufValue>& entry) { return entry.first; }
std::string_view NameOf(const GgufTensor& tensor) { return tensor.name; }

std::string_view ArrayTypeName(const GgufArray& array) {
  constexpr std::string_view kNames[] = {"array of unsigned integers", "array of signed integers",
                                         "array of floats", "array of booleans",
                                         "array of strings"};
  return kNames[array.values.index()];
}

std::string_view TypeName(const GgufValue* value) {
  if (value == nullptr) return "nothing";
  if (const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(value)) {
    return ArrayTypeName(**array);
  }
  constexpr std::string_view kNames[] = {"unsigned integer", "signed integer", "float", "boolean",
                                         "string"};
  return kNames[value->index()];
}

}  // namespace

struct GgufFile::State {
  std::string path;
  FileMapping mapping;
  GgufContents contents;
  Index keys;
  Index tensor_names;

  absl::Status Fill(std::span<const std::byte> bytes) {
    PAGODA_ASSIGN_OR_RETURN(contents, ParseGguf(bytes, path));
    keys = SortedByName(contents.metadata, KeyOf);
    tensor_names = SortedByName(contents.tensors, NameOf);
    absl::Status unique = CheckUnique(contents.metadata, keys, KeyOf);
    if (unique.ok()) unique = CheckUnique(contents.tensors, tensor_names, NameOf);
    if (unique.ok()) return unique;
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", unique.message()));
  }

  absl::Status WrongType(std::string_view key, const char* expected, const GgufValue* found) const {
    return absl::InvalidArgumentError(absl::StrCat(path, ": metadata '", base::ToAbsl(key),
                                                   "': expected ", expected, ", found ",
                                                   base::ToAbsl(TypeName(found))));
  }
};

GgufFile::GgufFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
GgufFile::~GgufFile() = default;

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(FileMapping mapping, FileMapping::Open(path));
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> file, Parse(mapping.bytes(), path));
  // Moving a mapping does not move the bytes, so the views stay good.
  file->state_->mapping = std::move(mapping);
  return file;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(std::span<const std::byte> bytes,
                                                          const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  PAGODA_RETURN_IF_ERROR(state->Fill(bytes));
  return std::make_unique<GgufFile>(std::move(state));
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto* entry = FindByName(state_->contents.metadata, state_->keys, key, KeyOf);
  return entry == nullptr ? nullptr : &entry->second;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  return FindByName(state_->contents.tensors, state_->tensor_names, name, NameOf);
}

absl::StatusOr<std::string_view> GgufFile::String(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value != nullptr && std::holds_alternative<std::string_view>(*value)) {
    return std::get<std::string_view>(*value);
  }
  return state_->WrongType(key, "a string", value);
}

absl::StatusOr<std::uint64_t> GgufFile::Unsigned(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value != nullptr) {
    if (const auto* number = std::get_if<std::uint64_t>(value)) return *number;
    const auto* number = std::get_if<std::int64_t>(value);
    if (number != nullptr && *number >= 0) return static_cast<std::uint64_t>(*number);
  }
  return state_->WrongType(key, "an integer of at least 0", value);
}

absl::StatusOr<double> GgufFile::Float(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value != nullptr && std::holds_alternative<double>(*value)) return std::get<double>(*value);
  return state_->WrongType(key, "a float", value);
}

absl::StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value != nullptr && std::holds_alternative<bool>(*value)) return std::get<bool>(*value);
  return state_->WrongType(key, "a boolean", value);
}

namespace {

// The elements of `value` when it is an array of T; null otherwise.
template <typename T>
const std::vector<T>* ElementsOf(const GgufValue* value) {
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(value);
  return array == nullptr ? nullptr : std::get_if<std::vector<T>>(&(*array)->values);
}

}  // namespace

absl::StatusOr<std::span<const std::string_view>> GgufFile::Strings(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (const auto* elements = ElementsOf<std::string_view>(value)) return std::span(*elements);
  return state_->WrongType(key, "an array of strings", value);
}

absl::StatusOr<std::span<const double>> GgufFile::Floats(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (const auto* elements = ElementsOf<double>(value)) return std::span(*elements);
  return state_->WrongType(key, "an array of floats", value);
}

absl::StatusOr<std::vector<std::uint64_t>> GgufFile::Unsigneds(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (const auto* elements = ElementsOf<std::uint64_t>(value)) return *elements;
  if (const auto* elements = ElementsOf<std::int64_t>(value)) {
    const bool any_negative = std::any_of(elements->begin(), elements->end(),
                                          [](std::int64_t element) { return element < 0; });
    if (!any_negative) return std::vector<std::uint64_t>(elements->begin(), elements->end());
  }
  return state_->WrongType(key, "an array of integers of at least 0", value);
}

std::span<const std::pair<std::string_view, GgufValue>> GgufFile::metadata() const {
  return state_->contents.metadata;
}
std::span<const GgufTensor> GgufFile::tensors() const { return state_->contents.tensors; }
const std::string& GgufFile::path() const { return state_->path; }

}  // namespace pagoda::formats
