// The library's own decomposition of whole texts sorts marks by exchanging neighbours, which is
// quadratic in a run of them; so characters are decomposed one by one, sorted here, and given back
// to it for composing.
#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

constexpr std::size_t kMaxDecomposed = 8;  // characters; Unicode's longest has four
constexpr unsigned char kFirstByteOfU0300 = 0xCC;

// Marks that came with Unicode 10 to 15, and the one character since that composes with another.
// The models' tokenizers know Unicode 9: to them these are characters that nothing happens to.
struct Range {
  char32_t first, last;
};
constexpr Range kNewerMarks[] = {
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
    {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}};

int ClassOf(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void AppendDecomposed(char32_t c, std::vector<utf8proc_int32_t>& to) {
  std::array<utf8proc_int32_t, kMaxDecomposed> parts{};
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundary);
  PAGODA_CHECK(count >= 0);
  PAGODA_CHECK(count <= static_cast<utf8proc_ssize_t>(parts.size()));
  to.insert(to.end(), parts.begin(), parts.begin() + count);
}

// Sorts one run of marks by class, equal ones left in their order. `places` is room to work in.
void OrderRun(std::span<utf8proc_int32_t> run, std::vector<std::uint64_t>& places) {
  constexpr int kClassShift = 56;  // the class above the place, the place above the mark
  constexpr int kPlaceShift = 24;
  constexpr std::uint64_t kMarkMask = (std::uint64_t{1} << kPlaceShift) - 1;
  places.clear();
  for (std::size_t i = 0; i < run.size(); ++i) {
    const auto mark_class = static_cast<std::uint64_t>(ClassOf(run[i]));
    places.push_back((mark_class << kClassShift) | (std::uint64_t{i} << kPlaceShift) |
                     static_cast<std::uint64_t>(run[i]));
  }
  std::ranges::sort(places);
  for (std::size_t i = 0; i < run.size(); ++i) {
    run[i] = static_cast<utf8proc_int32_t>(places[i] & kMarkMask);
  }
}

void OrderMarks(std::vector<utf8proc_int32_t>& text) {
  std::vector<std::uint64_t> places;
  for (auto at = text.begin(); at != text.end();) {
    const auto is_mark = [](utf8proc_int32_t c) { return ClassOf(c) != 0; };
    const auto begin = std::find_if(at, text.end(), is_mark);
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    if (end - begin > 1) OrderRun({begin, end}, places);
    at = end;
  }
}

// Composes the characters decomposed so far, which are then gone.
void AppendComposed(std::vector<utf8proc_int32_t>& characters, std::string& to) {
  OrderMarks(characters);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  PAGODA_CHECK(count >= 0);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const utf8proc_ssize_t length =
        utf8proc_encode_char(characters[static_cast<std::size_t>(i)], bytes.data());
    to.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
  }
  characters.clear();
}

bool IsNewer(char32_t c) {
  const auto* const range =
      std::ranges::lower_bound(kNewerMarks, c, {}, [](const Range& each) { return each.last; });
  return range != std::end(kNewerMarks) && range->first <= c;
}

}  // namespace

bool IsPlainlyNfc(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) < kFirstByteOfU0300; });
}

std::string NormalizeNfc(std::string_view text) {
  std::string composed;
  composed.reserve(text.size());
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = ReadUtf8(text.substr(at));
    if (IsNewer(unit.code_point)) {
      AppendComposed(characters, composed);
      composed += text.substr(at, unit.length);
    } else {
      AppendDecomposed(unit.code_point, characters);
    }
    at += unit.length;
  }
  AppendComposed(characters, composed);
  return composed;
}

}  // namespace pagoda::text
