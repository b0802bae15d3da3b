// Aho-Corasick over bytes, with the failure links folded into one dense transition table. A node is
// a prefix of some stop string; the node reached after any text is the longest such prefix that the
// text ends with. So a node already knows, without looking at the text, the longest stop string
// that ends here and how many of the last bytes may still become one.
#include "text/stop_automaton.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace pagoda::text {
namespace {

using Node = std::uint16_t;
static_assert(kMaxStopStrings * kMaxStopStringBytes < 0xffff, "a node must fit its type");
constexpr Node kRoot = 0;

// What is true whenever the text so far leads to this node.
struct NodeFacts {
  std::int16_t stop = -1;         // the longest stop string that ends here, or -1
  std::uint16_t stop_length = 0;  // its bytes
  std::uint16_t held = 0;         // the longest proper prefix of a stop string that ends here
};

class StopAutomaton final : public base::StopCondition {
 public:
  StopAutomaton(std::span<const std::string> stops, const Tokenizer& tokenizer,
                ControlTokens control)
      : tokenizer_(tokenizer), control_(control) {
    NumberTheBytes(stops);
    AddNode();
    for (std::size_t i = 0; i < stops.size(); ++i) AddStop(stops[i], static_cast<std::int16_t>(i));
    FoldFailureLinks();
  }

  base::StopStep Advance(std::uint32_t state, base::TokenId token) const override {
    PAGODA_CHECK(state < facts_.size());
    const std::string_view bytes = TextBytes(tokenizer_, token, control_);
    base::StopStep step;
    step.token_bytes = static_cast<std::uint32_t>(bytes.size());
    auto node = static_cast<Node>(state);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      node = next_[node * num_classes_ + class_of_[static_cast<std::uint8_t>(bytes[i])]];
      const NodeFacts& facts = facts_[node];
      // The scan goes on after a match: below min_tokens the caller ignores it and keeps the state.
      if (facts.stop >= 0 && step.matched_stop < 0) {
        step.matched_stop = facts.stop;
        step.match_end = static_cast<std::uint32_t>(i + 1);
        step.match_length = facts.stop_length;
      }
    }
    step.next_state = node;
    step.held_bytes = facts_[node].held;
    return step;
  }

 private:
  // Bytes that occur in no stop string share class 0, which leads to the root from everywhere.
  void NumberTheBytes(std::span<const std::string> stops) {
    for (const std::string& stop : stops) {
      for (const char c : stop) {
        std::uint16_t& byte_class = class_of_[static_cast<std::uint8_t>(c)];
        if (byte_class == 0) byte_class = static_cast<std::uint16_t>(num_classes_++);
      }
    }
  }

  Node AddNode() {
    next_.resize(next_.size() + num_classes_, kRoot);
    facts_.emplace_back();
    return static_cast<Node>(facts_.size() - 1);
  }

  void AddStop(std::string_view stop, std::int16_t index) {
    Node node = kRoot;
    for (std::size_t i = 0; i < stop.size(); ++i) {
      facts_[node].held =
          static_cast<std::uint16_t>(i);  // it has a child, so it is a proper prefix
      const std::size_t edge = node * num_classes_ + class_of_[static_cast<std::uint8_t>(stop[i])];
      if (next_[edge] == kRoot) {
        const Node added = AddNode();
        next_[edge] = added;
      }
      node = next_[edge];
    }
    if (facts_[node].stop < 0) {  // of two equal stop strings the first is reported
      facts_[node].stop = index;
      facts_[node].stop_length = static_cast<std::uint16_t>(stop.size());
    }
  }

  // Breadth first, so that a node's failure node (the longest proper suffix that is a node) is
  // complete before the node. Both the edges a node lacks and the facts it lacks are its failure
  // node's.
  void FoldFailureLinks() {
    std::vector<Node> failure(facts_.size(), kRoot);
    std::vector<Node> order = {kRoot};
    order.reserve(facts_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Node node = order[i];
      for (std::size_t byte_class = 1; byte_class < num_classes_; ++byte_class) {
        Node& child = next_[node * num_classes_ + byte_class];
        const Node from_failure =
            node == kRoot ? kRoot : next_[failure[node] * num_classes_ + byte_class];
        if (child == kRoot) {
          child = from_failure;
        } else {
          failure[child] = from_failure;
          Inherit(facts_[child], facts_[from_failure]);
          order.push_back(child);
        }
      }
    }
    PAGODA_CHECK(order.size() == facts_.size());
  }

  // A node's own facts are longer than those of its failure node.
  static void Inherit(NodeFacts& facts, const NodeFacts& failure) {
    if (facts.stop < 0) {
      facts.stop = failure.stop;
      facts.stop_length = failure.stop_length;
    }
    if (facts.held == 0) facts.held = failure.held;
  }

  const Tokenizer& tokenizer_;
  const ControlTokens control_;
  std::array<std::uint16_t, 256> class_of_{};
  std::size_t num_classes_ = 1;
  std::vector<Node> next_;        // [node, byte class]
  std::vector<NodeFacts> facts_;  // [node]
};

absl::Status CheckStops(std::span<const std::string> stops) {
  if (stops.size() > kMaxStopStrings) {
    return base::FieldError("stop", absl::StrCat(stops.size(), " stop strings were given; at most ",
                                                 kMaxStopStrings, " are possible"));
  }
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return base::FieldError("stop", absl::StrCat("stop string ", i, " is empty; leave it out"));
    }
    if (stops[i].size() > kMaxStopStringBytes) {
      return base::FieldError(
          "stop", absl::StrCat("stop string ", i, " has ", stops[i].size(), " bytes; at most ",
                               kMaxStopStringBytes, " are possible"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const base::StopCondition>> MakeStopAutomaton(
    std::span<const std::string> stops, const Tokenizer& tokenizer, ControlTokens control) {
  PAGODA_RETURN_IF_ERROR(CheckStops(stops));
  return std::make_unique<const StopAutomaton>(stops, tokenizer, control);
}

}  // namespace pagoda::text
