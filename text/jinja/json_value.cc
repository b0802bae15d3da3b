// Recursion follows the nesting of the document, which its reader bounds.
#include "text/jinja/json_value.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "text/jinja/workspace.h"

namespace pagoda::text::jinja {
namespace {

absl::StatusOr<Value> NewInput(std::string_view text, Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* made,
                          workspace.NewString(MarkedString::FromInput(text)));
  return made;
}

absl::StatusOr<Value> NumberFrom(const formats::JsonValue& json) {
  if (const auto integer = json.AsInteger(); integer.has_value()) return *integer;
  if (json.AsUnsigned().has_value()) {
    return absl::InvalidArgumentError("an integer does not fit 64 bits, which is not supported");
  }
  return *json.AsNumber();
}

}  // namespace

absl::StatusOr<Value> FromJson(const formats::JsonValue& json, Workspace& workspace) {
  using Kind = formats::JsonValue::Kind;
  PAGODA_RETURN_IF_ERROR(workspace.Spend(1));
  switch (json.kind()) {
    case Kind::kNull:
      return None{};
    case Kind::kBool:
      return *json.AsBool();
    case Kind::kNumber:
      return NumberFrom(json);
    case Kind::kString:
      return NewInput(*json.AsString(), workspace);
    case Kind::kArray: {
      std::vector<Value> items;
      for (const formats::JsonValue& element : json.Elements()) {
        PAGODA_ASSIGN_OR_RETURN(const Value item, FromJson(element, workspace));
        items.push_back(item);
      }
      PAGODA_ASSIGN_OR_RETURN(const List* list, workspace.NewList(std::move(items)));
      return list;
    }
    case Kind::kObject: {
      std::vector<std::pair<Value, Value>> entries;
      for (const formats::JsonMember& member : json.Members()) {
        PAGODA_ASSIGN_OR_RETURN(const Value key, NewInput(member.key, workspace));
        PAGODA_ASSIGN_OR_RETURN(const Value value, FromJson(member.value, workspace));
        entries.emplace_back(key, value);
      }
      PAGODA_ASSIGN_OR_RETURN(const Dict* dict, workspace.NewDict(entries));
      return dict;
    }
  }
  return absl::InternalError("no such kind of JSON value");
}

}  // namespace pagoda::text::jinja
