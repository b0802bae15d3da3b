#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pagoda::text::jinja {

// Everything that has a name in the language. Names are resolved while parsing, so that a template
// that needs more than this engine has is refused when it is loaded.
enum class Filter : std::uint8_t {
  kTrim,
  kToJson,
  kLength,
  kDefault,
  kJoin,
  kFirst,
  kLast,
  kString,
  kList,
  kItems,
  kUpper,
  kLower,
  kCapitalize,
  kReplace,
  kSafe,
  // These five take the name of a test or a filter, so they have a node of their own: Selection,
  // Mapping.
  kSelect,
  kReject,
  kSelectAttr,
  kRejectAttr,
  kMap
};
enum class Test : std::uint8_t {
  kDefined,
  kUndefined,
  kNone,
  kString,
  kBoolean,
  kInteger,
  kNumber,
  kMapping,
  kSequence,
  kIterable,
  kTrue,
  kFalse,
  kFloat,
  kOdd,
  kEven,
  // With an argument from here on.
  kDivisibleBy,
  kIn,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual
};
inline constexpr bool TakesArgument(Test test) { return test >= Test::kDivisibleBy; }
enum class Method : std::uint8_t {
  kStrip,
  kLstrip,
  kRstrip,
  kStartsWith,
  kEndsWith,
  kSplit,
  kGet,
  kItems,
  kKeys,
  kValues,
  kUpper,
  kLower,
  kCapitalize,
  kReplace
};
enum class Function : std::uint8_t { kRaiseException, kNamespace, kRange, kStrftimeNow };

inline constexpr std::size_t kMaxParameters = 3;

// A callable and its parameters in order; the first `num_required` must be given. A parameter
// without a name can only be given by position. Namespace() takes any keywords and is not bound by
// this.
template <typename Id>
struct Signature {
  std::string_view name;
  Id id;
  std::size_t num_parameters = 0;
  std::size_t num_required = 0;
  std::string_view parameters[kMaxParameters] = {};
};

// Null when the engine has none of that name.
const Signature<Filter>* FindFilter(std::string_view name);
const Signature<Method>* FindMethod(std::string_view name);
const Signature<Function>* FindFunction(std::string_view name);
std::optional<Test> FindTest(std::string_view name);

// True for the names that Python's own objects of this type have. As an attribute such a name means
// the method, never a key.
enum class HostType : std::uint8_t { kString, kInteger, kList, kDict };
bool IsHostAttribute(HostType type, std::string_view name);

}  // namespace pagoda::text::jinja
