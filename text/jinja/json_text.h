#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// The value as JSON, spelled as Python's json.dumps(value, ensure_ascii=False, indent=indent) does.
// Marks follow their characters, escaped or not. Errors: InvalidArgument for what JSON has no form
// for.
absl::StatusOr<MarkedString> ToJson(const Value& value, std::optional<std::int64_t> indent,
                                    Workspace& workspace);

}  // namespace pagoda::text::jinja
