#include "text/jinja/selection.h"

#include <charconv>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "text/jinja/apply.h"
#include "text/jinja/operators.h"
#include "text/jinja/workspace.h"

namespace pagoda::text::jinja {
namespace {

// One step of a dotted path: an integer is a place, anything else a key or attribute.
absl::StatusOr<Value> Step(const Value& value, std::string_view name, Workspace& workspace) {
  std::int64_t place = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
  if (error == std::errc() && end == name.data() + name.size() && name[0] != '-') {
    return Subscript(value, place, workspace);
  }
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* key, workspace.NewString(name));
  return Subscript(value, key, workspace);
}

absl::StatusOr<Value> AtPath(Value value, std::string_view path, Workspace& workspace) {
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    PAGODA_ASSIGN_OR_RETURN(value, Step(value, path.substr(0, dot), workspace));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return value;
}

absl::StatusOr<Value> MakeStream(std::vector<Value> items, Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const List* made,
                          workspace.NewList(std::move(items), List::Kind::kStream));
  return made;
}

}  // namespace

absl::StatusOr<Value> Select(const Selection& selection, const Value& input, Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(input, workspace));
  std::vector<Value> kept;
  for (const Value& item : *items) {
    PAGODA_RETURN_IF_ERROR(workspace.Spend(1));
    PAGODA_ASSIGN_OR_RETURN(const Value tested, AtPath(item, selection.attribute, workspace));
    bool holds = IsTruthy(tested);
    if (selection.test.has_value()) {
      PAGODA_ASSIGN_OR_RETURN(holds,
                              ApplyTest(*selection.test, tested, selection.argument, workspace));
    }
    if (holds == selection.keeps) kept.push_back(item);
  }
  return MakeStream(std::move(kept), workspace);
}

absl::StatusOr<Value> Map(const Mapping& mapping, const Value& input, Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Value>* items, Items(input, workspace));
  std::vector<Value> mapped;
  for (const Value& item : *items) {
    PAGODA_RETURN_IF_ERROR(workspace.Spend(1));
    Value result = item;
    if (mapping.attribute.empty()) {
      PAGODA_ASSIGN_OR_RETURN(result, ApplyFilter(mapping.filter, item, {}, workspace));
    } else {
      PAGODA_ASSIGN_OR_RETURN(result, AtPath(item, mapping.attribute, workspace));
      const bool is_absent = std::holds_alternative<Undefined>(result);
      if (is_absent && mapping.otherwise.has_value()) result = *mapping.otherwise;
    }
    mapped.push_back(result);
  }
  return MakeStream(std::move(mapped), workspace);
}

}  // namespace pagoda::text::jinja
