#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expression` is not OK.
#define PAGODA_RETURN_IF_ERROR(expression)                    \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

// Assigns the value of a StatusOr to `target` (which may be a declaration), or returns its status.
#define PAGODA_ASSIGN_OR_RETURN(target, expression) \
  PAGODA_ASSIGN_OR_RETURN_1(PAGODA_JOIN(status_or_, __LINE__), target, expression)
#define PAGODA_ASSIGN_OR_RETURN_1(holder, target, expression) \
  auto holder = (expression);                                 \
  if (!holder.ok()) return holder.status();                   \
  target = *std::move(holder)
#define PAGODA_JOIN(a, b) PAGODA_JOIN_1(a, b)
#define PAGODA_JOIN_1(a, b) a##b
