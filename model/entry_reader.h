#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/json_document.h"

namespace pagoda::model {

// Reads the entries of one JSON object and remembers which were asked for; what was never asked for
// is what would be ignored. `place` opens every message: the file, and the path inside it. Lives
// inside one call.
class EntryReader {
 public:
  EntryReader(formats::JsonValue object, std::string place)
      : object_(object), place_(std::move(place)) {}

  // The entry; nothing when it is absent or null. Counts as asked for.
  std::optional<formats::JsonValue> Take(std::string_view key);

  bool IsNull(std::string_view key) const {
    const std::optional<formats::JsonValue> value = object_.Find(key);
    return value.has_value() && value->is_null();
  }

  // A whole number from 1 to `largest`.
  absl::StatusOr<std::int32_t> Count(std::string_view key, std::uint64_t largest);
  absl::StatusOr<std::int32_t> CountOr(std::string_view key, std::uint64_t largest,
                                       std::int32_t absent);
  // A finite number above 0.
  absl::StatusOr<double> Positive(std::string_view key);
  absl::StatusOr<double> PositiveOr(std::string_view key, double absent);
  absl::StatusOr<bool> BoolOr(std::string_view key, bool absent);
  absl::StatusOr<std::string_view> TextOr(std::string_view key, std::string_view absent);

  // Entries that leave the mathematics alone at one value: any other asks for what is not built.
  absl::Status OnlyBool(std::string_view key, bool harmless);
  absl::Status OnlyNumber(std::string_view key, double harmless);
  absl::Status OnlyText(std::string_view key, std::string_view harmless);

  // Unimplemented with the name of an entry that was never asked for, is not null and is not in
  // `ignored`.
  absl::Status CheckAllTaken(std::span<const std::string_view> ignored) const;

  absl::Status Refused(std::string_view key, std::string_view why) const;     // InvalidArgument
  absl::Status NotBuilt(std::string_view key, std::string_view value) const;  // Unimplemented
  std::string PlaceOf(std::string_view key) const;

 private:
  formats::JsonValue object_;
  std::string place_;
  std::vector<std::string> taken_;
};

}  // namespace pagoda::model
