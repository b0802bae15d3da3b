#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/jinja/limits.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Owns every value of one rendering and counts what the rendering costs. Nothing is freed before
// the end: the bound on working bytes is a bound on all that is ever made. Threads: one.
class Workspace {
 public:
  // Counts work; fails when kMaxSteps is passed.
  absl::Status Spend(std::int64_t steps) {
    steps_ += steps;
    return steps_ <= kMaxSteps ? absl::OkStatus() : TooMuch("kMaxSteps", kMaxSteps);
  }
  absl::Status SpendOnBytes(std::size_t bytes) {
    return Spend(1 + static_cast<std::int64_t>(bytes) / kBytesPerStep);
  }
  // Counts memory that a value already made takes on.
  absl::Status Hold(std::size_t bytes);
  std::size_t held_bytes() const { return held_bytes_; }

  absl::StatusOr<const MarkedString*> NewString(MarkedString text);
  absl::StatusOr<const MarkedString*> NewString(std::string_view text) {
    return NewString(MarkedString::FromTemplate(text));
  }
  // A string that its maker goes on appending to, with Hold for what it adds.
  absl::StatusOr<MarkedString*> NewOpenString(MarkedString text);
  // Items that are lists or dicts must not make it deeper than kMaxValueDepth.
  absl::StatusOr<const List*> NewList(std::vector<Value> items,
                                      List::Kind kind = List::Kind::kList);
  // Later entries win over earlier ones of the same key.
  absl::StatusOr<const Dict*> NewDict(const std::vector<std::pair<Value, Value>>& entries);
  absl::StatusOr<Namespace*> NewNamespace();
  absl::StatusOr<Loop*> NewLoop(const std::vector<Value>& items);

  // The one form of every limit passed: ResourceExhausted.
  static absl::Status TooMuch(std::string_view bound, std::int64_t value);

 private:
  std::int64_t steps_ = 0;
  std::size_t held_bytes_ = 0;
  // Deques, because their elements stay where they are.
  std::deque<MarkedString> strings_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
};

}  // namespace pagoda::text::jinja
