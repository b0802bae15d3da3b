// File: u64 length of the header, the header (a JSON object: name -> dtype, shape, data_offsets
// from the header's end; "__metadata__" holds texts), the tensors' bytes.

#include "formats/safetensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/bounded_reader.h"
#include "formats/file_mapping.h"
#include "formats/foreign_file.h"
#include "formats/json_document.h"

namespace pagoda::formats {
namespace {

// What a file that ends too early is most likely to want.
constexpr const char* kCutToDo =
    "; if the file was not fetched whole, fetch it again and compare its size";

using base::ToAbsl;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kHeaderDepth = 8;  // an entry is 3 deep

// Whole bytes of one element. The format's types of 4 and 6 bits are not among them.
std::optional<std::uint64_t> BytesOf(std::string_view type) {
  struct Type {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr Type kTypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8},     {"C64", 8},
  };
  for (const Type& known : kTypes) {
    if (known.name == type) return known.bytes;
  }
  return std::nullopt;
}

class HeaderParser {
 public:
  HeaderParser(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}

  // `document` gets the header; the tensors' names point into it.
  absl::StatusOr<std::vector<SafetensorsTensor>> Run(std::unique_ptr<JsonDocument>& document) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view header, FindHeader());
    PAGODA_ASSIGN_OR_RETURN(
        document, JsonDocument::Parse(
                      header, name_ + ": header",
                      {.max_bytes = SafetensorsFile::kMaxHeaderBytes, .max_depth = kHeaderDepth}));
    if (document->root().kind() != JsonValue::Kind::kObject) {
      return Refused(
          absl::StrCat("its header is ", document->root().KindName(), ", not an object"));
    }
    PAGODA_RETURN_IF_ERROR(AddMembers(document->root()));
    PAGODA_RETURN_IF_ERROR(PlaceTensors());
    return std::move(tensors_);
  }

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  absl::Status AddMembers(const JsonValue& root) {
    for (const JsonMember& member : root.Members()) {
      const absl::Status added =
          member.key == kMetadataKey ? CheckMetadata(member.value) : AddTensor(member);
      if (!added.ok()) return added;
    }
    return absl::OkStatus();
  }

  absl::Status Refused(std::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", ToAbsl(why)));
  }
  absl::Status RefusedTensor(std::string_view tensor, std::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": tensor '", ToAbsl(tensor), "' ", ToAbsl(why)));
  }

  absl::StatusOr<std::string_view> FindHeader() {
    BoundedReader reader(bytes_);
    std::uint64_t length = 0;
    if (!reader.TryRead(length)) {
      return Refused(absl::StrCat("is ", bytes_.size(), " bytes long, too short for a header"));
    }
    if (length > SafetensorsFile::kMaxHeaderBytes) {
      return Refused(absl::StrCat("says that its header has ", length, " bytes; the limit is ",
                                  SafetensorsFile::kMaxHeaderBytes, AdviceOnForeign(bytes_)));
    }
    std::string_view header;
    if (!reader.TryReadText(length, header)) {
      return Refused(absl::StrCat("says that its header has ", length, " bytes, but only ",
                                  reader.remaining(), " follow", kCutToDo));
    }
    data_ = bytes_.subspan(reader.offset());
    return header;
  }

  absl::Status CheckMetadata(const JsonValue& metadata) const {
    if (metadata.kind() != JsonValue::Kind::kObject) {
      return Refused(absl::StrCat("__metadata__ is ", metadata.KindName(), ", not an object"));
    }
    for (const JsonMember& member : metadata.Members()) {
      if (member.value.kind() == JsonValue::Kind::kString) continue;
      return Refused(absl::StrCat("__metadata__ entry '", ToAbsl(member.key), "' is ",
                                  member.value.KindName(), ", not a string"));
    }
    return absl::OkStatus();
  }

  absl::Status AddTensor(const JsonMember& member) {
    if (tensors_.size() == SafetensorsFile::kMaxTensors) {
      return Refused(
          absl::StrCat("has more than ", SafetensorsFile::kMaxTensors, " tensors, the limit"));
    }
    if (member.key.empty() || member.key.size() > SafetensorsFile::kMaxNameBytes) {
      return Refused(absl::StrCat("has a tensor name of ", member.key.size(),
                                  " bytes; expected 1 to ", SafetensorsFile::kMaxNameBytes));
    }
    SafetensorsTensor tensor{.name = member.key, .type = {}, .shape = {}, .data = {}};
    Range range;
    PAGODA_RETURN_IF_ERROR(ReadEntries(member.value, tensor, range));
    PAGODA_RETURN_IF_ERROR(CheckSize(tensor, range));
    tensor.data = data_.subspan(range.begin, range.end - range.begin);
    tensors_.push_back(std::move(tensor));
    ranges_.push_back(range);
    return absl::OkStatus();
  }

  absl::Status ReadEntries(const JsonValue& value, SafetensorsTensor& tensor, Range& range) const {
    int num_read = 0;
    for (const JsonMember& entry : value.Members()) {
      absl::Status read = absl::OkStatus();
      if (entry.key == "dtype" && entry.value.AsString().has_value()) {
        tensor.type = *entry.value.AsString();
      } else if (entry.key == "shape") {
        read = ReadShape(entry.value, tensor);
      } else if (entry.key == "data_offsets") {
        read = ReadRange(entry.value, tensor.name, range);
      } else {
        read = RefusedTensor(tensor.name, absl::StrCat("has the entry '", ToAbsl(entry.key),
                                                       "' as ", entry.value.KindName(),
                                                       "; expected dtype, shape, data_offsets"));
      }
      if (!read.ok()) return read;
      ++num_read;
    }
    // No key stands twice, so three entries are all three.
    if (num_read == 3) return absl::OkStatus();
    return RefusedTensor(tensor.name, "lacks one of dtype, shape, data_offsets");
  }

  absl::Status ReadShape(const JsonValue& value, SafetensorsTensor& tensor) const {
    const std::vector<JsonValue> sizes = value.Elements();
    if (value.kind() != JsonValue::Kind::kArray || sizes.size() > SafetensorsFile::kMaxDimensions) {
      return RefusedTensor(tensor.name, absl::StrCat("has a shape that is no array of at most ",
                                                     SafetensorsFile::kMaxDimensions, " sizes"));
    }
    for (const JsonValue& size : sizes) {
      if (!size.AsUnsigned().has_value()) {
        return RefusedTensor(tensor.name, "has a size that is not a whole number from 0 on");
      }
      tensor.shape.push_back(*size.AsUnsigned());
    }
    return absl::OkStatus();
  }

  absl::Status ReadRange(const JsonValue& value, std::string_view tensor, Range& range) const {
    const std::vector<JsonValue> ends = value.Elements();
    if (ends.size() != 2 || !ends[0].AsUnsigned().has_value() ||
        !ends[1].AsUnsigned().has_value()) {
      return RefusedTensor(tensor, "has data_offsets that are not two whole numbers from 0 on");
    }
    range = {.begin = *ends[0].AsUnsigned(), .end = *ends[1].AsUnsigned()};
    if (range.begin <= range.end && range.end <= data_.size()) return absl::OkStatus();
    return RefusedTensor(
        tensor, absl::StrCat("lies at bytes ", range.begin, " to ", range.end,
                             ", but the file has ", data_.size(), " bytes of data", kCutToDo));
  }

  absl::Status CheckSize(const SafetensorsTensor& tensor, Range range) const {
    const std::optional<std::uint64_t> element = BytesOf(tensor.type);
    if (!element.has_value()) {
      return RefusedTensor(tensor.name,
                           absl::StrCat("is of the unknown type '", ToAbsl(tensor.type), "'"));
    }
    std::optional<std::uint64_t> bytes = element;
    for (const std::uint64_t size : tensor.shape) {
      if (bytes.has_value()) bytes = CheckedMultiply(*bytes, size);
    }
    if (bytes == range.end - range.begin) return absl::OkStatus();
    return RefusedTensor(
        tensor.name,
        absl::StrCat("of type ", ToAbsl(tensor.type), " and shape [",
                     absl::StrJoin(tensor.shape, ", "), "] takes ",
                     bytes.has_value() ? absl::StrCat(*bytes) : "more than 2^64",
                     " bytes, but its data_offsets give it ", range.end - range.begin));
  }

  // Sorts by place and checks that the ranges cover the data, each byte once.
  absl::Status PlaceTensors() {
    std::vector<std::size_t> order(tensors_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return std::pair(ranges_[a].begin, ranges_[a].end) <
             std::pair(ranges_[b].begin, ranges_[b].end);
    });
    std::vector<SafetensorsTensor> sorted;
    std::uint64_t covered = 0;
    for (const std::size_t i : order) {
      const Range range = ranges_[i];
      if (range.begin != covered) {
        return RefusedTensor(
            tensors_[i].name,
            absl::StrCat(
                "begins at byte ", range.begin, " of the data; expected ", covered,
                range.begin < covered ? ": it overlaps another" : ": a gap lies before it"));
      }
      covered = range.end;
      sorted.push_back(std::move(tensors_[i]));
    }
    tensors_ = std::move(sorted);
    if (covered == data_.size()) return absl::OkStatus();
    return Refused(
        absl::StrCat("has ", data_.size(), " bytes of data, but its tensors take ", covered));
  }

  const std::span<const std::byte> bytes_;
  const std::string& name_;
  std::span<const std::byte> data_;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<Range> ranges_;  // of tensors_
};

}  // namespace

struct SafetensorsFile::State {
  std::string path;
  FileMapping mapping;  // empty when someone else owns the bytes
  std::unique_ptr<JsonDocument> header;
  std::vector<SafetensorsTensor> tensors;
  std::map<std::string_view, std::size_t> by_name;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsFile::~SafetensorsFile() = default;

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(FileMapping mapping, FileMapping::Open(path));
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file, Parse(mapping.bytes(), path));
  file->state_->mapping = std::move(mapping);
  return file;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Parse(
    std::span<const std::byte> bytes, const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  PAGODA_ASSIGN_OR_RETURN(state->tensors, HeaderParser(bytes, name).Run(state->header));
  for (std::size_t i = 0; i < state->tensors.size(); ++i) {
    state->by_name.emplace(state->tensors[i].name, i);
  }
  return std::make_unique<SafetensorsFile>(std::move(state));
}

std::span<const SafetensorsTensor> SafetensorsFile::tensors() const { return state_->tensors; }
const std::string& SafetensorsFile::path() const { return state_->path; }

const SafetensorsTensor* SafetensorsFile::FindTensor(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

}  // namespace pagoda::formats
