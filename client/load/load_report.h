#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "client/load/load_options.h"
#include "client/load/load_run.h"

namespace pagoda::client {

// What was asked, in one line.
std::string LoadAsText(const LoadOptions& options);
// A table for a person. Rows without a measurement say so.
std::string ReportAsText(const LoadOptions& options, const LoadResult& result);
// Everything, times in milliseconds; what was not measured is null.
nlohmann::json ReportAsJson(const LoadOptions& options, const LoadResult& result);

// Whether more requests failed than the options allow, or none was answered.
bool HasFailed(const LoadOptions& options, const LoadResult& result);

}  // namespace pagoda::client
