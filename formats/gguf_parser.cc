// Layout of a file: magic "GGUF", version u32, tensor count u64, entry count u64; the metadata
// entries (key, value type u32, value); the tensor descriptions (name, dimensions u32, shape u64[],
// type u32, offset u64); padding to the alignment; the tensor data, each tensor at an offset from
// there that is a multiple of the alignment. Invariant: a count or length is compared with the
// bytes left before anything is allocated or read for it.

#include "formats/gguf_parser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/bounded_reader.h"
#include "formats/foreign_file.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1 << 20;
// What a file that ends too early is most likely to want.
constexpr const char* kCutToDo =
    "; if the file was not fetched whole, fetch it again and compare its size";
constexpr std::string_view kAlignmentKey = "general.alignment";

enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// The fewest bytes that one value of the type can take; 0 for a number that is no type.
std::uint64_t MinBytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kString:
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kArray:
      return 12;
  }
  return 0;
}

// What a tensor description asks for, before the data section is known.
struct Placement {
  std::uint64_t offset = 0;                // from the start of the data section
  std::optional<std::uint64_t> num_bytes;  // none: a type of unknown layout
};

std::string Quoted(std::string_view text) {
  constexpr std::size_t kShown = 80;
  const std::string escaped = absl::CHexEscape(base::ToAbsl(text.substr(0, kShown)));
  return absl::StrCat("'", escaped, text.size() > kShown ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), reader_(bytes), name_(name) {}

  absl::StatusOr<GgufContents> Run() {
    PAGODA_RETURN_IF_ERROR(ReadHeader());
    PAGODA_RETURN_IF_ERROR(ReadMetadata());
    PAGODA_RETURN_IF_ERROR(ReadAlignment());
    PAGODA_RETURN_IF_ERROR(ReadTensors());
    PAGODA_RETURN_IF_ERROR(PlaceTensors());
    return std::move(contents_);
  }

 private:
  template <typename... Parts>
  absl::Status Refuse(const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": at byte ", reader_.offset(), ": ", parts...));
  }

  absl::Status Cut(std::string_view what) const {
    return Refuse("the file ends inside ", base::ToAbsl(what), ", with ", reader_.remaining(),
                  " bytes left", kCutToDo);
  }

  absl::Status ReadHeader();
  absl::Status ReadMetadata();
  absl::Status ReadAlignment();
  absl::Status ReadTensors();
  absl::Status ReadTensor();
  absl::Status ReadShape(GgufTensor& tensor, std::uint64_t& num_values);
  absl::StatusOr<Placement> ReadPlacement(const GgufTensor& tensor, std::uint64_t num_values);
  absl::Status PlaceTensors();
  absl::Status CheckCoverage(std::uint64_t data_bytes) const;

  absl::StatusOr<std::string_view> ReadName(std::string_view what);
  absl::StatusOr<std::string_view> ReadString();
  absl::StatusOr<GgufValue> ReadBool();
  absl::StatusOr<GgufValue> ReadText();
  absl::StatusOr<GgufValue> ReadValue(ValueType type, std::string_view key);
  absl::StatusOr<GgufValue> ReadArray(std::string_view key);
  absl::Status ReadElements(ValueType type, std::uint64_t count, GgufArray& array);
  absl::Status ReadBools(std::uint64_t count, std::vector<bool>& values);
  absl::Status ReadStrings(std::uint64_t count, std::vector<std::string_view>& values);

  template <typename Stored, typename Kept>
  absl::Status ReadNumber(Kept& value) {
    Stored stored{};
    if (!reader_.TryRead(stored)) return Cut("a number");
    value = static_cast<Kept>(stored);
    return absl::OkStatus();
  }

  template <typename Stored, typename Kept>
  absl::StatusOr<GgufValue> ReadScalar() {
    Kept value{};
    PAGODA_RETURN_IF_ERROR((ReadNumber<Stored, Kept>(value)));
    return GgufValue(value);
  }

  // Requires: the bytes of `count` numbers were seen to be left.
  template <typename Stored, typename Kept>
  absl::Status ReadNumbers(std::uint64_t count, GgufArray& array) {
    std::vector<Kept> values(count);
    for (Kept& value : values) PAGODA_RETURN_IF_ERROR((ReadNumber<Stored, Kept>(value)));
    array.values = std::move(values);
    return absl::OkStatus();
  }

  std::span<const std::byte> bytes_;
  BoundedReader reader_;
  const std::string& name_;
  std::uint64_t num_tensors_ = 0;
  std::uint64_t num_entries_ = 0;
  std::uint64_t num_array_elements_ = 0;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<Placement> placements_;  // one per tensor
  GgufContents contents_;
};

absl::Status Parser::ReadHeader() {
  std::string_view magic;
  if (!reader_.TryReadText(4, magic)) return Cut("the magic");
  if (magic != "GGUF") {
    const std::string advice = AdviceOnForeign(bytes_);
    return Refuse(
        "not a GGUF file: it starts with ", Quoted(magic),
        advice.empty() ? "; give a GGUF file, or the folder of a model in safetensors" : advice);
  }
  std::uint32_t version = 0;
  if (!reader_.TryRead(version)) return Cut("the version");
  if (version != 0 && (version & 0xffffu) == 0) {
    return Refuse("a big-endian GGUF file; only little-endian ones are supported");
  }
  if (version != 2 && version != 3) {
    return Refuse("GGUF version ", version, "; supported are 2 and 3");
  }
  if (!reader_.TryRead(num_tensors_) || !reader_.TryRead(num_entries_)) return Cut("the counts");
  if (num_tensors_ > GgufFile::kMaxTensors) {
    return Refuse("says it has ", num_tensors_, " tensors; the limit is ", GgufFile::kMaxTensors);
  }
  if (num_entries_ > GgufFile::kMaxMetadataEntries) {
    return Refuse("says it has ", num_entries_, " metadata entries; the limit is ",
                  GgufFile::kMaxMetadataEntries);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> Parser::ReadName(std::string_view what) {
  std::uint64_t length = 0;
  if (!reader_.TryRead(length)) return Cut(what);
  if (length == 0) return Refuse(base::ToAbsl(what), " is empty");
  if (length > GgufFile::kMaxNameBytes) {
    return Refuse(base::ToAbsl(what), " has ", length, " bytes; the limit is ",
                  GgufFile::kMaxNameBytes);
  }
  std::string_view name;
  if (!reader_.TryReadText(length, name)) return Cut(what);
  return name;
}

absl::StatusOr<std::string_view> Parser::ReadString() {
  std::uint64_t length = 0;
  if (!reader_.TryRead(length)) return Cut("a string");
  std::string_view text;
  if (!reader_.TryReadText(length, text)) {
    return Refuse("a string says it has ", length, " bytes; ", reader_.remaining(), " are left",
                  kCutToDo);
  }
  return text;
}

absl::Status Parser::ReadMetadata() {
  for (std::uint64_t i = 0; i < num_entries_; ++i) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view key, ReadName("a metadata key"));
    std::uint32_t type = 0;
    if (!reader_.TryRead(type)) return Cut("a value type");
    PAGODA_ASSIGN_OR_RETURN(GgufValue value, ReadValue(static_cast<ValueType>(type), key));
    contents_.metadata.emplace_back(key, std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufValue> Parser::ReadBool() {
  std::vector<bool> value;
  PAGODA_RETURN_IF_ERROR(ReadBools(1, value));
  return GgufValue(static_cast<bool>(value[0]));
}

absl::StatusOr<GgufValue> Parser::ReadText() {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view text, ReadString());
  return GgufValue(text);
}

absl::StatusOr<GgufValue> Parser::ReadValue(ValueType type, std::string_view key) {
  switch (type) {
    case ValueType::kU8:
      return ReadScalar<std::uint8_t, std::uint64_t>();
    case ValueType::kI8:
      return ReadScalar<std::int8_t, std::int64_t>();
    case ValueType::kU16:
      return ReadScalar<std::uint16_t, std::uint64_t>();
    case ValueType::kI16:
      return ReadScalar<std::int16_t, std::int64_t>();
    case ValueType::kU32:
      return ReadScalar<std::uint32_t, std::uint64_t>();
    case ValueType::kI32:
      return ReadScalar<std::int32_t, std::int64_t>();
    case ValueType::kF32:
      return ReadScalar<float, double>();
    case ValueType::kU64:
      return ReadScalar<std::uint64_t, std::uint64_t>();
    case ValueType::kI64:
      return ReadScalar<std::int64_t, std::int64_t>();
    case ValueType::kF64:
      return ReadScalar<double, double>();
    case ValueType::kBool:
      return ReadBool();
    case ValueType::kString:
      return ReadText();
    case ValueType::kArray:
      return ReadArray(key);
  }
  return Refuse(Quoted(key), " has value type ", static_cast<std::uint32_t>(type),
                ", which is not one of GGUF's");
}

absl::StatusOr<GgufValue> Parser::ReadArray(std::string_view key) {
  std::uint32_t type_number = 0;
  std::uint64_t count = 0;
  if (!reader_.TryRead(type_number) || !reader_.TryRead(count)) return Cut("an array's header");
  const auto type = static_cast<ValueType>(type_number);
  if (type == ValueType::kArray) return Refuse(Quoted(key), " is an array of arrays");
  const std::uint64_t min_bytes = MinBytes(type);
  if (min_bytes == 0) {
    return Refuse(Quoted(key), " has element type ", type_number, ", which is not one of GGUF's");
  }
  if (count > reader_.remaining() / min_bytes) {
    return Refuse(Quoted(key), " says it has ", count, " elements; ", reader_.remaining(),
                  " bytes are left");
  }
  // Cannot wrap: the count is at most the bytes of the file.
  num_array_elements_ += count;
  if (num_array_elements_ > GgufFile::kMaxArrayElements) {
    return Refuse("the arrays up to ", Quoted(key), " have ", num_array_elements_,
                  " elements; the limit is ", GgufFile::kMaxArrayElements);
  }
  auto array = std::make_shared<GgufArray>();
  PAGODA_RETURN_IF_ERROR(ReadElements(type, count, *array));
  return GgufValue(std::shared_ptr<const GgufArray>(std::move(array)));
}

absl::Status Parser::ReadElements(ValueType type, std::uint64_t count, GgufArray& array) {
  switch (type) {
    case ValueType::kU8:
      return ReadNumbers<std::uint8_t, std::uint64_t>(count, array);
    case ValueType::kI8:
      return ReadNumbers<std::int8_t, std::int64_t>(count, array);
    case ValueType::kU16:
      return ReadNumbers<std::uint16_t, std::uint64_t>(count, array);
    case ValueType::kI16:
      return ReadNumbers<std::int16_t, std::int64_t>(count, array);
    case ValueType::kU32:
      return ReadNumbers<std::uint32_t, std::uint64_t>(count, array);
    case ValueType::kI32:
      return ReadNumbers<std::int32_t, std::int64_t>(count, array);
    case ValueType::kF32:
      return ReadNumbers<float, double>(count, array);
    case ValueType::kU64:
      return ReadNumbers<std::uint64_t, std::uint64_t>(count, array);
    case ValueType::kI64:
      return ReadNumbers<std::int64_t, std::int64_t>(count, array);
    case ValueType::kF64:
      return ReadNumbers<double, double>(count, array);
    case ValueType::kBool:
      return ReadBools(count, array.values.emplace<std::vector<bool>>());
    case ValueType::kString:
      return ReadStrings(count, array.values.emplace<std::vector<std::string_view>>());
    case ValueType::kArray:
      break;
  }
  return Refuse("an array of arrays");
}

absl::Status Parser::ReadBools(std::uint64_t count, std::vector<bool>& values) {
  std::span<const std::byte> bytes;
  if (!reader_.TryReadBytes(count, bytes)) return Cut("a boolean");
  values.reserve(count);
  for (const std::byte byte : bytes) {
    if (byte > std::byte{1}) return Refuse("a boolean is ", static_cast<int>(byte), ", not 0 or 1");
    values.push_back(byte == std::byte{1});
  }
  return absl::OkStatus();
}

absl::Status Parser::ReadStrings(std::uint64_t count, std::vector<std::string_view>& values) {
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view text, ReadString());
    values.push_back(text);
  }
  return absl::OkStatus();
}

absl::Status Parser::ReadAlignment() {
  for (const auto& [key, value] : contents_.metadata) {
    if (key != kAlignmentKey) continue;
    const auto* alignment = std::get_if<std::uint64_t>(&value);
    if (alignment == nullptr) return Refuse("general.alignment is not an unsigned integer");
    const bool is_power_of_two = *alignment != 0 && (*alignment & (*alignment - 1)) == 0;
    if (!is_power_of_two || *alignment < 8 || *alignment > kMaxAlignment) {
      return Refuse("general.alignment is ", *alignment, "; expected a power of two from 8 to ",
                    kMaxAlignment);
    }
    alignment_ = *alignment;
  }
  return absl::OkStatus();
}

absl::Status Parser::ReadTensors() {
  for (std::uint64_t i = 0; i < num_tensors_; ++i) PAGODA_RETURN_IF_ERROR(ReadTensor());
  return absl::OkStatus();
}

absl::Status Parser::ReadTensor() {
  GgufTensor tensor;
  PAGODA_ASSIGN_OR_RETURN(tensor.name, ReadName("a tensor name"));
  std::uint64_t num_values = 1;
  PAGODA_RETURN_IF_ERROR(ReadShape(tensor, num_values));
  if (!reader_.TryRead(tensor.type)) return Cut("a tensor type");
  PAGODA_ASSIGN_OR_RETURN(const Placement placement, ReadPlacement(tensor, num_values));
  placements_.push_back(placement);
  contents_.tensors.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status Parser::ReadShape(GgufTensor& tensor, std::uint64_t& num_values) {
  std::uint32_t num_dimensions = 0;
  if (!reader_.TryRead(num_dimensions)) return Cut("a tensor's shape");
  if (num_dimensions == 0 || num_dimensions > GgufFile::kMaxDimensions) {
    return Refuse("tensor ", Quoted(tensor.name), " has ", num_dimensions,
                  " dimensions; expected 1 to ", GgufFile::kMaxDimensions);
  }
  for (std::uint32_t i = 0; i < num_dimensions; ++i) {
    std::uint64_t size = 0;
    if (!reader_.TryRead(size)) return Cut("a tensor's shape");
    if (size == 0) return Refuse("tensor ", Quoted(tensor.name), ": dimension ", i, " is 0");
    const auto product = CheckedMultiply(num_values, size);
    if (!product.has_value()) {
      return Refuse("tensor ", Quoted(tensor.name), ": its number of values exceeds 64 bits");
    }
    num_values = *product;
    tensor.shape.push_back(size);
  }
  return absl::OkStatus();
}

absl::StatusOr<Placement> Parser::ReadPlacement(const GgufTensor& tensor,
                                                std::uint64_t num_values) {
  Placement placement;
  if (!reader_.TryRead(placement.offset)) return Cut("a tensor's offset");
  if (placement.offset % alignment_ != 0) {
    return Refuse("tensor ", Quoted(tensor.name), ": offset ", placement.offset,
                  " is not a multiple of the alignment ", alignment_);
  }
  const auto type = FindGgufType(tensor.type);
  if (!type.has_value()) return placement;
  if (tensor.shape[0] % type->block_values != 0) {
    return Refuse("tensor ", Quoted(tensor.name), ": rows of ", tensor.shape[0],
                  " values do not fill blocks of ", type->block_values, " (",
                  base::ToAbsl(type->name), ")");
  }
  placement.num_bytes = CheckedMultiply(num_values / type->block_values, type->block_bytes);
  if (!placement.num_bytes.has_value()) {
    return Refuse("tensor ", Quoted(tensor.name), ": its size exceeds 64 bits");
  }
  return placement;
}

absl::Status Parser::PlaceTensors() {
  const std::uint64_t padding = (alignment_ - reader_.offset() % alignment_) % alignment_;
  std::span<const std::byte> skipped;
  // A file without tensors may end right after its descriptions.
  if (contents_.tensors.empty() && reader_.remaining() <= padding) return absl::OkStatus();
  if (!reader_.TryReadBytes(padding, skipped)) return Cut("the padding before the tensor data");
  const std::span<const std::byte> data = bytes_.subspan(reader_.offset());
  for (std::size_t i = 0; i < contents_.tensors.size(); ++i) {
    GgufTensor& tensor = contents_.tensors[i];
    const Placement& placement = placements_[i];
    const std::uint64_t num_bytes = placement.num_bytes.value_or(0);
    if (placement.offset > data.size() || num_bytes > data.size() - placement.offset) {
      return Refuse("tensor ", Quoted(tensor.name), " needs ", num_bytes, " bytes at offset ",
                    placement.offset, " of the tensor data, which has ", data.size(), kCutToDo);
    }
    tensor.data = data.subspan(placement.offset, num_bytes);
  }
  return CheckCoverage(data.size());
}

// Every byte of the data section belongs to exactly one tensor or is padding shorter than the
// alignment.
absl::Status Parser::CheckCoverage(std::uint64_t data_bytes) const {
  std::vector<std::size_t> order(placements_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return placements_[a].offset < placements_[b].offset;
  });
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const Placement& placement = placements_[i];
    if (!placement.num_bytes.has_value()) return absl::OkStatus();  // what follows cannot be judged
    if (placement.offset < end) {
      return Refuse("tensor ", Quoted(contents_.tensors[i].name), " at offset ", placement.offset,
                    " overlaps the one before it, which ends at ", end);
    }
    if (placement.offset - end >= alignment_) {
      return Refuse("bytes ", end, " to ", placement.offset,
                    " of the tensor data belong to no tensor");
    }
    end = placement.offset + *placement.num_bytes;
  }
  if (data_bytes - end >= alignment_) {
    return Refuse(data_bytes - end, " bytes after the last tensor belong to no tensor");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufContents> ParseGguf(std::span<const std::byte> bytes, const std::string& name) {
  return Parser(bytes, name).Run();
}

}  // namespace pagoda::formats
