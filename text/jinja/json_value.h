#pragma once

#include "absl/status/statusor.h"
#include "formats/json_document.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// A JSON text that a caller sent, as the values Python's json.loads would make of it; every string
// in it is marked as the caller's. Requires: no deeper than kMaxValueDepth. Errors: InvalidArgument
// for an integer past 64 bits, or when the workspace is full.
absl::StatusOr<Value> FromJson(const formats::JsonValue& json, Workspace& workspace);

}  // namespace pagoda::text::jinja
