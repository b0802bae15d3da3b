#include "client/load/load_options.h"

#include <charconv>

namespace pagoda::client {
namespace {

std::optional<std::int32_t> ParseLength(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

}  // namespace

std::optional<LengthRange> ParseLengths(std::string_view text) {
  constexpr std::string_view kTo = "..";
  const std::size_t at = text.find(kTo);
  const auto least = ParseLength(text.substr(0, at));
  const auto most =
      at == std::string_view::npos ? least : ParseLength(text.substr(at + kTo.size()));
  if (!least.has_value() || !most.has_value() || *most < *least) return std::nullopt;
  return LengthRange{*least, *most};
}

}  // namespace pagoda::client
