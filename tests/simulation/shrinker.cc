#include "tests/simulation/shrinker.h"

#include <algorithm>
#include <charconv>

namespace pagoda::simulation {
namespace {

// A request or an event.
struct Part {
  bool is_event = false;
  std::uint32_t place = 0;
};

Omission OmissionOf(const std::vector<Part>& gone) {
  Omission omission;
  for (const Part& part : gone) {
    (part.is_event ? omission.events : omission.requests).push_back(part.place);
  }
  std::ranges::sort(omission.requests);
  std::ranges::sort(omission.events);
  return omission;
}

}  // namespace

Omission Shrink(const Scenario& scenario, const std::function<bool(const Scenario&)>& fails) {
  std::vector<Part> kept, gone;
  for (std::uint32_t i = 0; i < scenario.requests.size(); ++i) kept.push_back({false, i});
  for (std::uint32_t i = 0; i < scenario.events.size(); ++i) kept.push_back({true, i});
  std::size_t size = std::max<std::size_t>(1, kept.size() / 2);
  bool has_shrunk = false;
  while (true) {
    for (std::size_t first = 0; first < kept.size();) {
      const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = begin + static_cast<std::ptrdiff_t>(std::min(size, kept.size() - first));
      std::vector<Part> without = gone;
      without.insert(without.end(), begin, end);
      const Omission omission = OmissionOf(without);
      if (!fails(scenario.Without(omission.requests, omission.events))) {
        first += size;
        continue;
      }
      gone = std::move(without);
      kept.erase(begin, end);
      has_shrunk = true;
    }
    if (size == 1 && !std::exchange(has_shrunk, false)) return OmissionOf(gone);
    size = std::max<std::size_t>(1, size / 2);
  }
}

std::string Omission::ToText() const {
  std::string text;
  const auto add = [&](char kind, std::uint32_t place) {
    if (!text.empty()) text += ',';
    text += kind + std::to_string(place);
  };
  for (const std::uint32_t place : requests) add('r', place);
  for (const std::uint32_t place : events) add('e', place);
  return text;
}

std::optional<Omission> Omission::FromText(std::string_view text) {
  Omission omission;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(text.size(), comma + 1));
    if (part.size() < 2 || (part[0] != 'r' && part[0] != 'e')) return std::nullopt;
    std::uint32_t place = 0;
    const auto [end, error] = std::from_chars(part.data() + 1, part.data() + part.size(), place);
    if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
    (part[0] == 'e' ? omission.events : omission.requests).push_back(place);
  }
  return omission;
}

}  // namespace pagoda::simulation
