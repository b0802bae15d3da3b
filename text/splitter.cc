#include "text/splitter.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/strings.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace pagoda::text {
namespace {

// Letters and numbers that Unicode 15 and 16 added; the library's tables end at 14. A later library
// only repeats them.
constexpr std::string_view kNewLetters =
    R"(\x{1C89}\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3}\x{10D4A}-\x{10D65})"
    R"(\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{1123F}\x{11240}\x{11380}-\x{11389}\x{1138B})"
    R"(\x{1138E}\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02})"
    R"(\x{11F04}-\x{11F10}\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA})"
    R"(\x{16100}-\x{1611D}\x{16D40}-\x{16D6C}\x{18CFF}\x{1B132}\x{1B155}\x{1DF25}-\x{1DF2A})"
    R"(\x{1E030}-\x{1E06D}\x{1E4D0}-\x{1E4EB}\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739})"
    R"(\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
constexpr std::string_view kNewNumbers =
    R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59})"
    R"(\x{16130}-\x{16139}\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3})"
    R"(\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})";
// SmolLM2's digit rule is not part of its expression and follows Unicode 17.
constexpr std::string_view kNewerDigits = R"(\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6})";

// White_Space, spelt out: the library's own class also holds U+180E.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string Class(std::string_view members) {
  return absl::StrCat("[", base::ToAbsl(members), "]");
}
std::string ClassWithout(std::string_view members) {
  return absl::StrCat("[^", base::ToAbsl(members), "]");
}

struct Classes {
  std::string letter = absl::StrCat(R"(\p{L})", base::ToAbsl(kNewLetters));
  std::string number = absl::StrCat(R"(\p{N})", base::ToAbsl(kNewNumbers));
  std::string space = std::string(kSpace);
};

// GPT-2: contractions; runs of letters, of numbers, of other marks, each with one space before it;
// runs of white space, of which the last character is left for what follows.
std::string Gpt2Pattern() {
  const auto [letter, number, space] = Classes();
  return absl::StrCat("'(?:s|t|re|ve|m|ll|d)| ?", Class(letter), "+| ?", Class(number), "+| ?",
                      ClassWithout(absl::StrCat(space, letter, number)), "+|", Class(space), "+(?!",
                      ClassWithout(space), ")|", Class(space), "+");
}

// SmolLM2 cuts out every digit first and then applies GPT-2's rule to what lies between. In one
// expression: a number is a piece alone, and white space before a number ends its stretch, as the
// end of the text does.
std::string SmollmPattern() {
  const auto [letter, older_number, space] = Classes();
  const std::string number = absl::StrCat(older_number, base::ToAbsl(kNewerDigits));
  return absl::StrCat("'(?:s|t|re|ve|m|ll|d)| ?", Class(letter), "+|", Class(number), "| ?",
                      ClassWithout(absl::StrCat(space, letter, number)), "+|", Class(space), "+(?!",
                      ClassWithout(absl::StrCat(space, number)), ")|", Class(space), "+");
}

// Llama 3 and Qwen2: contractions in either case; letters with any one character before them that
// is no letter, number or line end; numbers, in groups of at most `digits`; other marks with one
// space before and line ends after them; white space up to the last line end in it; other white
// space as with GPT-2.
std::string LineEndPattern(std::string_view digits) {
  const auto [letter, number, space] = Classes();
  return absl::StrCat(
      "(?i:'(?:s|t|re|ve|m|ll|d))|", ClassWithout(absl::StrCat(R"(\r\n)", letter, number)), "?",
      Class(letter), "+|", Class(number), base::ToAbsl(digits), "| ?",
      ClassWithout(absl::StrCat(space, letter, number)), R"(+[\r\n]*|)", Class(space),
      R"(*[\r\n]+|)", Class(space), "+(?!", ClassWithout(space), ")|", Class(space), "+");
}
std::string Llama3Pattern() { return LineEndPattern("{1,3}"); }
std::string Qwen2Pattern() { return LineEndPattern(""); }

struct Rule {
  std::string_view name;
  std::string (*pattern)();
};
constexpr Rule kRules[] = {{"gpt-2", Gpt2Pattern},
                           {"llama-bpe", Llama3Pattern},
                           {"qwen2", Qwen2Pattern},
                           {"smollm", SmollmPattern}};

struct PcreFree {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
template <typename T>
using PcrePtr = std::unique_ptr<T, PcreFree>;

// Far above what a rule without nested repetition can use on one piece, far below what would stall
// a worker.
constexpr std::uint32_t kMatchLimit = 10'000'000;
constexpr std::uint32_t kHeapLimitKib = 20'000;

std::string PcreMessage(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

class PcreSplitter : public Splitter {
 public:
  PcreSplitter(PcrePtr<pcre2_code> code, PcrePtr<pcre2_match_context> limits,
               bool compiled_to_machine_code)
      : code_(std::move(code)),
        limits_(std::move(limits)),
        compiled_to_machine_code_(compiled_to_machine_code) {}

  absl::Status Split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    const PcrePtr<pcre2_match_data> match(pcre2_match_data_create(1, nullptr));
    PAGODA_CHECK(match != nullptr);
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(match.get());
    std::size_t offset = 0;
    while (offset < text.size()) {
      const int found = MatchAt(text, offset, match.get());
      if (found < 0) return Failure(found, offset);
      PAGODA_CHECK(bounds[0] == offset);
      PAGODA_CHECK(bounds[1] > offset);
      pieces.push_back(text.substr(offset, bounds[1] - offset));
      offset = bounds[1];
    }
    return absl::OkStatus();
  }

 private:
  int MatchAt(std::string_view text, std::size_t offset, pcre2_match_data* match) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    if (compiled_to_machine_code_) {
      return pcre2_jit_match(code_.get(), subject, text.size(), offset, 0, match, limits_.get());
    }
    return pcre2_match(code_.get(), subject, text.size(), offset, PCRE2_NO_UTF_CHECK, match,
                       limits_.get());
  }

  static absl::Status Failure(int code, std::size_t offset) {
    // Every character is in one of the rule's classes, so a piece starts anywhere.
    PAGODA_CHECK(code != PCRE2_ERROR_NOMATCH);
    return absl::ResourceExhaustedError(
        absl::StrCat("splitting the text stopped at byte ", offset, ": ", PcreMessage(code)));
  }

  const PcrePtr<pcre2_code> code_;
  const PcrePtr<pcre2_match_context> limits_;
  const bool compiled_to_machine_code_;
};

std::unique_ptr<const Splitter> Compile(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  PcrePtr<pcre2_code> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                         pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                                         &error, &error_offset, nullptr));
  PAGODA_CHECK_MSG(code != nullptr,
                   absl::StrCat("pattern, offset ", error_offset, ": ", PcreMessage(error)));
  // Where machine code may not be made, the interpreter gives the same pieces.
  const bool compiled = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
  PcrePtr<pcre2_match_context> limits(pcre2_match_context_create(nullptr));
  PAGODA_CHECK(limits != nullptr);
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  pcre2_set_heap_limit(limits.get(), kHeapLimitKib);
  return std::make_unique<PcreSplitter>(std::move(code), std::move(limits), compiled);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Splitter>> Splitter::Create(std::string_view pre_tokenizer) {
  std::string known;
  for (const Rule& rule : kRules) {
    if (rule.name == pre_tokenizer) return Compile(rule.pattern());
    absl::StrAppend(&known, known.empty() ? "" : ", ", base::ToAbsl(rule.name));
  }
  return absl::InvalidArgumentError(absl::StrCat("pre-tokenizer '", base::ToAbsl(pre_tokenizer),
                                                 "' is not known; known are ", known));
}

}  // namespace pagoda::text
