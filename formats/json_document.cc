// The parser's tree is one flat tape; its handle is a pointer and an index, which JsonValue carries
// as two words so that no other file sees the parser.

#include "formats/json_document.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/file_mapping.h"
#include "formats/foreign_file.h"

namespace pagoda::formats {
namespace {

namespace dom = simdjson::dom;
using base::ToAbsl;

static_assert(std::is_trivially_copyable_v<dom::element>);
static_assert(sizeof(dom::element) == sizeof(std::array<std::uint64_t, 2>));

dom::element ElementOf(const std::array<std::uint64_t, 2>& words) {
  return std::bit_cast<dom::element>(words);
}

std::array<std::uint64_t, 2> WordsOf(const dom::element& element) {
  return std::bit_cast<std::array<std::uint64_t, 2>>(element);
}

template <typename T>
std::optional<T> As(const std::array<std::uint64_t, 2>& words) {
  T value{};
  if (ElementOf(words).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<std::string_view> FirstTwin(const dom::object& object) {
  std::vector<std::string_view> keys;
  for (const dom::key_value_pair& member : object) keys.push_back(member.key);
  std::sort(keys.begin(), keys.end());
  const auto twin = std::adjacent_find(keys.begin(), keys.end());
  if (twin == keys.end()) return std::nullopt;
  return *twin;
}

// Two readers of a text with the same key twice may see two different values.
absl::Status RefuseTwins(const dom::element& root, const std::string& name) {
  std::vector<dom::element> pending{root};
  while (!pending.empty()) {
    const dom::element element = pending.back();
    pending.pop_back();
    dom::array array;
    if (element.get(array) == simdjson::SUCCESS) {
      for (const dom::element child : array) {
        if (child.is_array() || child.is_object()) pending.push_back(child);
      }
    }
    dom::object object;
    if (element.get(object) != simdjson::SUCCESS) continue;
    if (const auto twin = FirstTwin(object); twin.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": the key '", ToAbsl(*twin), "' stands twice in one object"));
    }
    for (const dom::key_value_pair& member : object) {
      if (member.value.is_array() || member.value.is_object()) pending.push_back(member.value);
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct JsonDocument::State {
  std::string name;
  dom::parser parser;
  dom::element root;
};

JsonDocument::JsonDocument(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonDocument::~JsonDocument() = default;

absl::StatusOr<std::unique_ptr<JsonDocument>> JsonDocument::Parse(std::string_view text,
                                                                  const std::string& name,
                                                                  const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": is ", text.size(), " bytes of JSON; the limit is ", limits.max_bytes));
  }
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": is empty; JSON was expected"));
  }
  auto state = std::make_unique<State>();
  state->name = name;
  simdjson::error_code error = state->parser.allocate(text.size(), limits.max_depth);
  if (error == simdjson::SUCCESS) {
    error = state->parser.parse(text.data(), text.size(), true).get(state->root);
  }
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not JSON as read here: ", simdjson::error_message(error),
                     AdviceOnForeign(std::as_bytes(std::span(text)))));
  }
  PAGODA_RETURN_IF_ERROR(RefuseTwins(state->root, name));
  return std::make_unique<JsonDocument>(std::move(state));
}

absl::StatusOr<std::unique_ptr<JsonDocument>> JsonDocument::Open(const std::string& path,
                                                                 const JsonLimits& limits) {
  PAGODA_ASSIGN_OR_RETURN(const FileMapping file, FileMapping::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  return Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, limits);
}

JsonValue JsonDocument::root() const { return JsonValue(WordsOf(state_->root)); }
const std::string& JsonDocument::name() const { return state_->name; }

JsonValue::Kind JsonValue::kind() const {
  switch (ElementOf(words_).type()) {
    case dom::element_type::ARRAY:
      return Kind::kArray;
    case dom::element_type::OBJECT:
      return Kind::kObject;
    case dom::element_type::STRING:
      return Kind::kString;
    case dom::element_type::BOOL:
      return Kind::kBool;
    case dom::element_type::NULL_VALUE:
      return Kind::kNull;
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      break;
  }
  return Kind::kNumber;
}

const char* JsonValue::KindName() const {
  constexpr const char* kNames[] = {"null",     "true or false", "a number",
                                    "a string", "an array",      "an object"};
  return kNames[static_cast<std::size_t>(kind())];
}

std::optional<bool> JsonValue::AsBool() const { return As<bool>(words_); }

std::optional<std::int64_t> JsonValue::AsInteger() const { return As<std::int64_t>(words_); }

std::optional<std::uint64_t> JsonValue::AsUnsigned() const { return As<std::uint64_t>(words_); }

std::optional<double> JsonValue::AsNumber() const { return As<double>(words_); }

std::optional<std::string_view> JsonValue::AsString() const { return As<std::string_view>(words_); }

std::vector<JsonValue> JsonValue::Elements() const {
  std::vector<JsonValue> elements;
  dom::array array;
  if (ElementOf(words_).get(array) != simdjson::SUCCESS) return elements;
  for (const dom::element element : array) elements.push_back(JsonValue(WordsOf(element)));
  return elements;
}

std::vector<JsonMember> JsonValue::Members() const {
  std::vector<JsonMember> members;
  dom::object object;
  if (ElementOf(words_).get(object) != simdjson::SUCCESS) return members;
  for (const dom::key_value_pair& member : object) {
    members.push_back({member.key, JsonValue(WordsOf(member.value))});
  }
  return members;
}

std::optional<JsonValue> JsonValue::Find(std::string_view key) const {
  dom::object object;
  if (ElementOf(words_).get(object) != simdjson::SUCCESS) return std::nullopt;
  for (const dom::key_value_pair& member : object) {
    if (member.key == key) return JsonValue(WordsOf(member.value));
  }
  return std::nullopt;
}

}  // namespace pagoda::formats
