#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/request.h"
#include "scheduler/scheduler.h"
#include "tests/simulation/chance.h"

namespace pagoda::simulation {

// One request, as its client sends it. Its id is its place + 1.
struct RequestScript {
  int arrives_at = 0;  // tick
  base::TenantId tenant{0};
  std::vector<base::TokenId> prompt;
  scheduler::RequestFields fields;
  std::optional<std::string> salt;
  bool one_request_namespace = false;
  bool attach_keys = true;   // as a text worker does; otherwise the engine thread keys it
  bool stops_early = false;  // ends at the first token that kStopEvery divides
  // Its prompt is a public prefix, for these readers (none: for everybody).
  bool is_public_prefix = false;
  std::vector<base::TenantId> readers;

  bool IsFor(base::TenantId reader) const {
    return readers.empty() || std::ranges::find(readers, reader) != readers.end();
  }
};

// What happens to a server from outside, beside arrivals.
struct Event {
  enum class Kind : std::uint8_t {
    kCancel,       // of a request, in whatever state it is, also twice and after its end
    kPause,        // the reader's buffer is full
    kResume,       // it has drained
    kCutSlow,      // it has been full for too long
    kFailSubmit,   // the next step cannot be submitted
    kFailAwait,    // the oldest step ran and its result is lost, as is all it wrote
    kSpoilRow,     // one row of the oldest step is not finite
    kFlush,        // of one tenant, or of all when there is no such tenant
    kReconfigure,  // to one of the scenario's other lists of tenants
  };
  int at = 0;  // tick
  Kind kind = Kind::kCancel;
  std::uint32_t subject = 0;  // request, tenant or list, by place
};

// The life of one server, laid down before it begins: leaving requests or events out changes
// nothing of the others. Plain data.
struct Scenario {
  std::uint64_t lottery = 0;  // seed of what is drawn by tick while it plays
  scheduler::SchedulerConfig config;
  int fence_delay = 0;         // ticks between a job's end and its fence
  bool executes_late = false;  // a step's effects happen at its await, not at its submission
  bool plans_eagerly = false;  // as many steps as may be in flight at once
  // By arrival; the first of them are the public prefixes, computed one after the other before time
  // begins.
  std::vector<RequestScript> requests;
  std::vector<Event> events;  // by tick
  std::vector<std::vector<scheduler::TenantConfig>> other_tenants;

  std::int32_t pool_blocks() const { return config.pool_blocks_per_group[0]; }
  // Without some requests (and what happens to them) and events. By place.
  Scenario Without(const std::vector<std::uint32_t>& request_places,
                   const std::vector<std::uint32_t>& event_places) const;
  std::vector<bool> left_out;  // requests; empty: none
};

inline constexpr base::TokenId kVocabulary = 97;
inline constexpr base::TokenId kStopEvery = 12;
inline constexpr std::int32_t kSmallPoolBlocks = 64;
inline constexpr std::int32_t kLargePoolBlocks = 1024;
inline constexpr std::size_t kMaxBlockSize = 5;
// So many namespaces are never too few: none is closed for another.
inline constexpr std::int32_t kNamespacesForAll = 20;

// A tick is a millisecond of the manual clock.
constexpr base::Instant AtTick(int tick) {
  return base::Instant::FromNanos(std::int64_t{tick} * 1'000'000);
}

Scenario MakeScenario(Chance chance);

}  // namespace pagoda::simulation
