#include "text/jinja/builtins.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pagoda::text::jinja {
namespace {

constexpr std::array kFilters = {
    Signature<Filter>{"trim", Filter::kTrim, 1, 0, {"chars"}},
    Signature<Filter>{"tojson", Filter::kToJson, 1, 0, {"indent"}},
    Signature<Filter>{"length", Filter::kLength},
    Signature<Filter>{"count", Filter::kLength},
    Signature<Filter>{"default", Filter::kDefault, 2, 0, {"default_value", "boolean"}},
    Signature<Filter>{"d", Filter::kDefault, 2, 0, {"default_value", "boolean"}},
    Signature<Filter>{"join", Filter::kJoin, 1, 0, {"d"}},
    Signature<Filter>{"first", Filter::kFirst},
    Signature<Filter>{"last", Filter::kLast},
    Signature<Filter>{"string", Filter::kString},
    Signature<Filter>{"list", Filter::kList},
    Signature<Filter>{"items", Filter::kItems},
    Signature<Filter>{"upper", Filter::kUpper},
    Signature<Filter>{"lower", Filter::kLower},
    Signature<Filter>{"capitalize", Filter::kCapitalize},
    Signature<Filter>{"replace", Filter::kReplace, 3, 2, {"old", "new", "count"}},
    Signature<Filter>{"safe", Filter::kSafe},
    Signature<Filter>{"select", Filter::kSelect, 2, 0},
    Signature<Filter>{"reject", Filter::kReject, 2, 0},
    Signature<Filter>{"selectattr", Filter::kSelectAttr, 3, 1},
    Signature<Filter>{"rejectattr", Filter::kRejectAttr, 3, 1},
    Signature<Filter>{"map", Filter::kMap, 3, 0, {"", "attribute", "default"}},
};
constexpr std::array kMethods = {
    Signature<Method>{"strip", Method::kStrip, 1, 0},
    Signature<Method>{"lstrip", Method::kLstrip, 1, 0},
    Signature<Method>{"rstrip", Method::kRstrip, 1, 0},
    Signature<Method>{"startswith", Method::kStartsWith, 1, 1},
    Signature<Method>{"endswith", Method::kEndsWith, 1, 1},
    Signature<Method>{"split", Method::kSplit, 1, 0, {"sep"}},
    Signature<Method>{"get", Method::kGet, 2, 1},
    Signature<Method>{"items", Method::kItems},
    Signature<Method>{"keys", Method::kKeys},
    Signature<Method>{"values", Method::kValues},
    Signature<Method>{"upper", Method::kUpper},
    Signature<Method>{"lower", Method::kLower},
    Signature<Method>{"capitalize", Method::kCapitalize},
    Signature<Method>{"replace", Method::kReplace, 3, 2},
};
constexpr std::array kFunctions = {
    Signature<Function>{"raise_exception", Function::kRaiseException, 1, 1, {"message"}},
    Signature<Function>{"namespace", Function::kNamespace},
    Signature<Function>{"range", Function::kRange, 3, 1},
    Signature<Function>{"strftime_now", Function::kStrftimeNow, 1, 1, {"format"}},
};
constexpr std::array<std::pair<std::string_view, Test>, 32> kTests = {{
    {"defined", Test::kDefined},
    {"undefined", Test::kUndefined},
    {"none", Test::kNone},
    {"string", Test::kString},
    {"boolean", Test::kBoolean},
    {"integer", Test::kInteger},
    {"number", Test::kNumber},
    {"mapping", Test::kMapping},
    {"sequence", Test::kSequence},
    {"iterable", Test::kIterable},
    {"true", Test::kTrue},
    {"false", Test::kFalse},
    {"float", Test::kFloat},
    {"odd", Test::kOdd},
    {"even", Test::kEven},
    {"divisibleby", Test::kDivisibleBy},
    {"in", Test::kIn},
    {"==", Test::kEqual},
    {"eq", Test::kEqual},
    {"equalto", Test::kEqual},
    {"!=", Test::kNotEqual},
    {"ne", Test::kNotEqual},
    {"<", Test::kLess},
    {"lt", Test::kLess},
    {"lessthan", Test::kLess},
    {"<=", Test::kLessEqual},
    {"le", Test::kLessEqual},
    {">", Test::kGreater},
    {"gt", Test::kGreater},
    {"greaterthan", Test::kGreater},
    {">=", Test::kGreaterEqual},
    {"ge", Test::kGreaterEqual},
}};

// Python 3's public attributes, by type.
constexpr std::array<std::string_view, 47> kStringAttributes = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::array<std::string_view, 10> kIntegerAttributes = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "imag",      "is_integer", "numerator", "real"};
constexpr std::array<std::string_view, 11> kListAttributes = {
    "append", "clear", "copy",   "count",   "extend", "index",
    "insert", "pop",   "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 11> kDictAttributes = {
    "clear", "copy",    "fromkeys",   "get",    "items", "keys",
    "pop",   "popitem", "setdefault", "update", "values"};

template <typename Id, std::size_t kSize>
const Signature<Id>* FindIn(const std::array<Signature<Id>, kSize>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Signature<Id>::name);
  return found == all.end() ? nullptr : &*found;
}

template <std::size_t kSize>
bool Contains(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

const Signature<Filter>* FindFilter(std::string_view name) { return FindIn(kFilters, name); }
const Signature<Method>* FindMethod(std::string_view name) { return FindIn(kMethods, name); }
const Signature<Function>* FindFunction(std::string_view name) { return FindIn(kFunctions, name); }

std::optional<Test> FindTest(std::string_view name) {
  for (const auto& [known, test] : kTests) {
    if (known == name) return test;
  }
  return std::nullopt;
}

bool IsHostAttribute(HostType type, std::string_view name) {
  switch (type) {
    case HostType::kString:
      return Contains(kStringAttributes, name);
    case HostType::kInteger:
      return Contains(kIntegerAttributes, name);
    case HostType::kList:
      return Contains(kListAttributes, name);
    case HostType::kDict:
      return Contains(kDictAttributes, name);
  }
  return false;
}

}  // namespace pagoda::text::jinja
