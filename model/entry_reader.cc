#include "model/entry_reader.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace pagoda::model {

using base::ToAbsl;
using formats::JsonValue;

std::optional<JsonValue> EntryReader::Take(std::string_view key) {
  taken_.emplace_back(key);
  std::optional<JsonValue> value = object_.Find(key);
  if (value.has_value() && value->is_null()) value.reset();
  return value;
}

absl::StatusOr<std::int32_t> EntryReader::Count(std::string_view key, std::uint64_t largest) {
  const std::optional<JsonValue> value = Take(key);
  if (!value.has_value()) return Refused(key, "is missing");
  const std::optional<std::uint64_t> number = value->AsUnsigned();
  if (number.has_value() && *number >= 1 && *number <= largest) {
    return static_cast<std::int32_t>(*number);
  }
  return Refused(
      key, absl::StrCat("is ",
                        number.has_value() ? absl::StrCat(*number) : std::string(value->KindName()),
                        "; expected a whole number from 1 to ", largest));
}

absl::StatusOr<std::int32_t> EntryReader::CountOr(std::string_view key, std::uint64_t largest,
                                                  std::int32_t absent) {
  if (!Take(key).has_value()) return absent;
  return Count(key, largest);
}

absl::StatusOr<double> EntryReader::Positive(std::string_view key) {
  const std::optional<JsonValue> value = Take(key);
  if (!value.has_value()) return Refused(key, "is missing");
  const std::optional<double> number = value->AsNumber();
  if (number.has_value() && std::isfinite(*number) && *number > 0.0) return *number;
  return Refused(
      key, absl::StrCat("is ",
                        number.has_value() ? absl::StrCat(*number) : std::string(value->KindName()),
                        "; expected a number above 0"));
}

absl::StatusOr<double> EntryReader::PositiveOr(std::string_view key, double absent) {
  if (!Take(key).has_value()) return absent;
  return Positive(key);
}

absl::StatusOr<bool> EntryReader::BoolOr(std::string_view key, bool absent) {
  const std::optional<JsonValue> value = Take(key);
  if (!value.has_value()) return absent;
  if (value->AsBool().has_value()) return *value->AsBool();
  return Refused(key, absl::StrCat("is ", value->KindName(), "; expected true or false"));
}

absl::StatusOr<std::string_view> EntryReader::TextOr(std::string_view key,
                                                     std::string_view absent) {
  const std::optional<JsonValue> value = Take(key);
  if (!value.has_value()) return absent;
  if (value->AsString().has_value()) return *value->AsString();
  return Refused(key, absl::StrCat("is ", value->KindName(), "; expected a string"));
}

absl::Status EntryReader::OnlyBool(std::string_view key, bool harmless) {
  PAGODA_ASSIGN_OR_RETURN(const bool value, BoolOr(key, harmless));
  return value == harmless ? absl::OkStatus() : NotBuilt(key, value ? "true" : "false");
}

absl::Status EntryReader::OnlyNumber(std::string_view key, double harmless) {
  const std::optional<JsonValue> value = Take(key);
  if (!value.has_value() || value->AsNumber() == harmless) return absl::OkStatus();
  return NotBuilt(key, value->AsNumber().has_value() ? absl::StrCat(*value->AsNumber())
                                                     : std::string(value->KindName()));
}

absl::Status EntryReader::OnlyText(std::string_view key, std::string_view harmless) {
  PAGODA_ASSIGN_OR_RETURN(const std::string_view value, TextOr(key, harmless));
  return value == harmless ? absl::OkStatus()
                           : NotBuilt(key, absl::StrCat("'", ToAbsl(value), "'"));
}

absl::Status EntryReader::CheckAllTaken(std::span<const std::string_view> ignored) const {
  for (const formats::JsonMember& member : object_.Members()) {
    if (member.value.is_null()) continue;
    if (std::find(taken_.begin(), taken_.end(), member.key) != taken_.end()) continue;
    if (std::find(ignored.begin(), ignored.end(), member.key) != ignored.end()) continue;
    return absl::UnimplementedError(
        absl::StrCat(PlaceOf(member.key),
                     " is not known; it may change the mathematics, so the model is not loaded"));
  }
  return absl::OkStatus();
}

absl::Status EntryReader::Refused(std::string_view key, std::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(key), " ", ToAbsl(why)));
}

absl::Status EntryReader::NotBuilt(std::string_view key, std::string_view value) const {
  return absl::UnimplementedError(
      absl::StrCat(PlaceOf(key), " is ", ToAbsl(value), ", which is not built"));
}

std::string EntryReader::PlaceOf(std::string_view key) const {
  return absl::StrCat(place_, ": entry '", ToAbsl(key), "'");
}

}  // namespace pagoda::model
