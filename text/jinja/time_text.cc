#include "text/jinja/time_text.h"

#include <array>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"

namespace pagoda::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::size_t kShortLetters = 3;

struct Moment {
  std::chrono::sys_days date;
  std::chrono::year_month_day day;
  std::chrono::hh_mm_ss<std::chrono::seconds> time;
};

Moment MomentOf(std::int64_t unix_seconds) {
  const std::chrono::sys_seconds at{std::chrono::seconds(unix_seconds)};
  const auto date = std::chrono::floor<std::chrono::days>(at);
  return {date, date, std::chrono::hh_mm_ss<std::chrono::seconds>(at - date)};
}

std::string Padded(std::int64_t value, std::size_t width, char with = '0') {
  std::string digits = absl::StrCat(value);
  if (digits.size() < width) digits.insert(0, width - digits.size(), with);
  return digits;
}

std::optional<std::string> Date(char conversion, const Moment& moment) {
  const auto year = static_cast<int>(moment.day.year());
  const std::int64_t day = static_cast<unsigned>(moment.day.day());
  const std::string_view month = kMonths[static_cast<unsigned>(moment.day.month()) - 1];
  const std::string_view weekday = kDays[std::chrono::weekday(moment.date).c_encoding()];
  switch (conversion) {
    case 'Y':
      return absl::StrCat(year);
    case 'y':
      return Padded(year % 100, 2);
    case 'm':
      return Padded(static_cast<unsigned>(moment.day.month()), 2);
    case 'd':
      return Padded(day, 2);
    case 'e':
      return Padded(day, 2, ' ');
    case 'B':
      return std::string(month);
    case 'b':
    case 'h':
      return std::string(month.substr(0, kShortLetters));
    case 'A':
      return std::string(weekday);
    case 'a':
      return std::string(weekday.substr(0, kShortLetters));
    case 'j':
      return Padded((moment.date - std::chrono::sys_days(moment.day.year() / 1 / 1)).count() + 1,
                    3);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> Time(char conversion, const Moment& moment) {
  const std::int64_t hour = moment.time.hours().count();
  switch (conversion) {
    case 'H':
      return Padded(hour, 2);
    case 'I':
      return Padded(hour % 12 == 0 ? 12 : hour % 12, 2);
    case 'p':
      return hour < 12 ? "AM" : "PM";
    case 'M':
      return Padded(moment.time.minutes().count(), 2);
    case 'S':
      return Padded(moment.time.seconds().count(), 2);
    case 'Z':
      return "UTC";
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::string> FormatTime(std::string_view format, std::int64_t unix_seconds) {
  const Moment moment = MomentOf(unix_seconds);
  std::string text;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%' || at + 1 == format.size()) {
      text += format[at];
      continue;
    }
    const char conversion = format[++at];
    std::optional<std::string> part = Date(conversion, moment);
    if (!part.has_value()) part = Time(conversion, moment);
    if (!part.has_value()) {
      return absl::UnimplementedError(absl::StrCat("the conversion '%", std::string(1, conversion),
                                                   "' of strftime_now is not supported"));
    }
    text += *part;
  }
  return text;
}

}  // namespace pagoda::text::jinja
