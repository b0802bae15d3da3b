#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::formats {

struct JsonMember;

// One value of a JsonDocument: a handle of two words, which must not outlive the document. Typed
// access gives nothing when the value is of another kind. Threads: any.
class JsonValue {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind() const;
  // "a string", "an object" and so on, for messages.
  const char* KindName() const;
  bool is_null() const { return kind() == Kind::kNull; }

  std::optional<bool> AsBool() const;
  // A number written without fraction and exponent that fits.
  std::optional<std::int64_t> AsInteger() const;
  std::optional<std::uint64_t> AsUnsigned() const;
  std::optional<double> AsNumber() const;  // any number
  std::optional<std::string_view> AsString() const;

  // In document order; empty for values of other kinds.
  std::vector<JsonValue> Elements() const;
  std::vector<JsonMember> Members() const;
  // The member of this name; nothing when there is none or this is no object. Walks the object: for
  // many lookups take Members once.
  std::optional<JsonValue> Find(std::string_view key) const;

 private:
  friend class JsonDocument;
  using Words = std::array<std::uint64_t, 2>;  // the parser's own handle
  explicit JsonValue(Words words) : words_(words) {}

  Words words_;
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;
  std::size_t max_depth = 64;
};

// A whole JSON text, parsed and kept: valid UTF-8, no deeper and no larger than the limits, no
// object with the same key twice. Move-only in effect: held by pointer. Threads: const after Parse,
// any.
class JsonDocument {
 public:
  // InvalidArgument (`name`, what is wrong); the text is not kept.
  static absl::StatusOr<std::unique_ptr<JsonDocument>> Parse(std::string_view text,
                                                             const std::string& name,
                                                             const JsonLimits& limits = {});
  // The file at `path`. NotFound and the other errors of FileMapping::Open, too.
  static absl::StatusOr<std::unique_ptr<JsonDocument>> Open(const std::string& path,
                                                            const JsonLimits& limits = {});

  struct State;
  explicit JsonDocument(std::unique_ptr<State> state);  // for Parse
  ~JsonDocument();

  JsonValue root() const;
  const std::string& name() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::formats
