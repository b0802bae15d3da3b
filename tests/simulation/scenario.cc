// Pools are small and requests large, so that blocks, slots and step tokens are always fought for;
// documents are few, so that prefixes meet.
#include "tests/simulation/scenario.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/bits.h"

namespace pagoda::simulation {
namespace {

using scheduler::SchedulerConfig;
using scheduler::TenantConfig;
using Kind = Event::Kind;

constexpr int kWatermarkPercent = 2;
constexpr std::int32_t kLeastPoolWithLane = 8;

// Scenarios on larger pools are longer, so there are few of them.
std::int32_t DrawPoolBlocks(Chance& chance) {
  const int size = chance.Roll(1'200);
  if (size == 0) return kLargePoolBlocks;
  if (size < 30) return kSmallPoolBlocks + 1 + chance.Roll(chance.OneIn(8) ? 900 : 150);
  return 5 + chance.Roll(chance.OneIn(3) ? 60 : 20);
}

std::int32_t SumOfWeights(const std::vector<TenantConfig>& tenants) {
  std::int32_t sum = 0;
  for (const TenantConfig& tenant : tenants) sum += tenant.weight;
  return sum;
}

std::int32_t Floor(std::int32_t whole, const TenantConfig& tenant, std::int32_t sum) {
  return static_cast<std::int32_t>(std::int64_t{whole} * tenant.weight / sum);
}

// The bounds of a step that every tenant's floor needs.
void RaiseBounds(SchedulerConfig& config, const std::vector<TenantConfig>& tenants) {
  const std::int32_t sum = SumOfWeights(tenants);
  for (const TenantConfig& tenant : tenants) {
    while (Floor(config.max_num_seqs, tenant, sum) < 1) ++config.max_num_seqs;
  }
  for (const TenantConfig& tenant : tenants) {
    const std::int32_t slots = Floor(config.max_num_seqs, tenant, sum);
    std::int32_t& tokens = config.max_num_batched_tokens;
    while (Floor(tokens, tenant, sum) < config.block_size + slots) ++tokens;
    std::int32_t& rows = config.max_logit_rows_per_step;
    while (rows < config.max_num_seqs || Floor(rows, tenant, sum) < slots) ++rows;
  }
}

std::vector<TenantConfig> DrawTenants(Chance& chance, const SchedulerConfig& config,
                                      std::size_t count) {
  const std::int32_t usable = config.pool_blocks_per_group[0] - 1 - config.public_blocks;
  std::int32_t left = usable - base::DivUp(usable * kWatermarkPercent, 100);
  std::vector<TenantConfig> tenants;
  const auto num_tenants = static_cast<std::int32_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    TenantConfig tenant;
    tenant.name = std::string(1, static_cast<char>('A' + i));
    tenant.weight = 1 + chance.Roll(3);
    if (!chance.OneIn(3)) {
      tenant.reserve_blocks = chance.Roll(left / num_tenants + 1);
      if (chance.OneIn(4)) tenant.reserve_blocks += left / 4;
    }
    tenant.reserve_blocks = std::min(tenant.reserve_blocks, left);
    left -= tenant.reserve_blocks;
    tenant.isolated = tenant.reserve_blocks >= 2 && chance.OneIn(3);
    if (chance.OneIn(4)) tenant.max_running = 1 + chance.Roll(3);
    const std::int32_t queue = config.max_queued_requests / num_tenants;
    if (chance.OneIn(3)) tenant.max_queued_requests = 1 + chance.Roll(std::min(queue, 6));
    tenants.push_back(tenant);
  }
  return tenants;
}

class Author {
 public:
  explicit Author(Chance chance) : chance_(chance) {}

  Scenario Write() {
    scenario_.lottery = chance_.Seed();
    WriteServer();
    WritePublicPrefixes();
    WriteRequests();
    WriteTrouble();
    std::ranges::sort(scenario_.events, {}, [](const Event& event) {
      return std::tuple(event.at, event.kind, event.subject);
    });
    return std::move(scenario_);
  }

 private:
  void WriteServer() {
    SchedulerConfig& config = scenario_.config;
    config.pool_blocks_per_group = {DrawPoolBlocks(chance_)};
    const bool is_small = scenario_.pool_blocks() <= kSmallPoolBlocks;
    config.block_size = chance_.OneIn(2) ? 4 : 1 + chance_.Roll(5);
    config.key_domain.block_size = config.block_size;
    config.max_num_seqs = 1 + chance_.Roll(is_small ? 7 : 20);
    config.max_logit_rows_per_step = config.max_num_seqs + (chance_.OneIn(2) ? 0 : chance_.Roll(8));
    config.max_num_batched_tokens =
        config.block_size + config.max_num_seqs + chance_.Roll(is_small ? 40 : 200);
    if (scenario_.pool_blocks() >= kLeastPoolWithLane && chance_.OneIn(3)) {
      config.public_blocks = 1 + chance_.Roll(std::min(6, scenario_.pool_blocks() / 4));
    }
    const std::int32_t usable = scenario_.pool_blocks() - 1 - config.public_blocks;
    const std::int32_t most = usable * config.block_size + 1;
    config.max_model_len = std::max(2, chance_.OneIn(4) ? most / (2 + chance_.Roll(3)) : most);
    config.max_queued_requests = 64;
    config.max_in_flight = 1 + chance_.Roll(2);
    const std::size_t count = chance_.OneIn(4) ? 0 : 1 + static_cast<std::size_t>(chance_.Roll(3));
    if (count > 0) {
      config.tenants = DrawTenants(chance_, config, count);
      RaiseBounds(config, config.tenants);
      if (chance_.OneIn(4)) scenario_.other_tenants.push_back(DrawTenants(chance_, config, count));
    }
    config.max_namespaces = config.max_num_seqs + chance_.Roll(3);
    if (!chance_.OneIn(3))
      config.max_namespaces = std::max(config.max_namespaces, kNamespacesForAll);
    if (chance_.OneIn(8)) {
      config.cached_block_ttl_ms = 1 + chance_.Roll(chance_.OneIn(3) ? 4 : 60);
    }
    scenario_.fence_delay = chance_.Roll(3);
    scenario_.executes_late = chance_.OneIn(2);
    scenario_.plans_eagerly = chance_.OneIn(2);
  }

  std::int32_t CapacityTokens(base::TenantId tenant) const {
    const std::int32_t blocks = scheduler::Scheduler::CapacityBlocks(scenario_.config, tenant);
    return std::min(blocks * scenario_.config.block_size, scenario_.config.max_model_len);
  }

  void WriteDocuments(std::int32_t length) {
    documents_.resize(1 + static_cast<std::size_t>(chance_.Roll(4)));
    Chance words(chance_.Seed());
    for (auto& document : documents_) {
      for (std::int32_t i = 0; i <= length; ++i) {
        document.push_back(static_cast<base::TokenId>(words.Roll(kVocabulary)));
      }
    }
  }

  std::size_t num_tenants() const {
    return std::max<std::size_t>(1, scenario_.config.tenants.size());
  }

  // The server asks in the name of the tenant that can hold the most.
  base::TenantId WidestTenant() const {
    base::TenantId widest(0);
    for (std::uint32_t t = 1; t < num_tenants(); ++t) {
      if (CapacityTokens(base::TenantId(t)) > CapacityTokens(widest)) widest = base::TenantId(t);
    }
    return widest;
  }

  // Two of them may begin alike, and what is set aside may be more than they take.
  void WritePublicPrefixes() {
    const std::int32_t block_size = scenario_.config.block_size;
    std::int32_t left = scenario_.config.public_blocks;
    for (int i = chance_.Roll(3); i > 0 && left > 0; --i) {
      RequestScript script;
      script.tenant = WidestTenant();
      script.is_public_prefix = script.one_request_namespace = true;
      script.attach_keys = false;
      script.fields.max_tokens = 1;
      script.fields.temperature = 0.0f;
      const std::int32_t most = std::min(
          {left * block_size, CapacityTokens(script.tenant), scenario_.config.max_model_len - 1});
      WritePrefixTokens(script, 1 + chance_.Roll(most));
      for (std::uint32_t t = 0; t < num_tenants() && num_tenants() > 1; ++t) {
        if (chance_.OneIn(3)) script.readers.emplace_back(t);
      }
      left -= base::DivUp(static_cast<std::int32_t>(script.prompt.size()), block_size);
      scenario_.requests.push_back(std::move(script));
    }
  }

  void WritePrefixTokens(RequestScript& script, std::int32_t length) {
    const auto count = static_cast<std::size_t>(length);
    if (!scenario_.requests.empty() && chance_.OneIn(2)) {
      script.prompt = scenario_.requests.front().prompt;
      script.prompt.resize(std::min(script.prompt.size(), count));
    }
    Chance words(chance_.Seed());
    while (script.prompt.size() < count) {
      script.prompt.push_back(static_cast<base::TokenId>(words.Roll(kVocabulary)));
    }
  }

  // Half of the prompts begin with a public prefix, or with a part of one.
  void BeginWithPrefix(std::vector<base::TokenId>& prompt) {
    if (num_prefixes_ == 0 || chance_.OneIn(2)) return;
    const int which = chance_.Roll(static_cast<int>(num_prefixes_));
    const auto& prefix = scenario_.requests[static_cast<std::size_t>(which)].prompt;
    std::size_t count = std::min(prefix.size(), prompt.size());
    if (chance_.OneIn(3)) count = static_cast<std::size_t>(chance_.Roll(static_cast<int>(count)));
    std::copy_n(prefix.begin(), count, prompt.begin());
  }

  void WriteRequests() {
    num_prefixes_ = scenario_.requests.size();
    WriteDocuments(scenario_.config.max_model_len);
    const bool is_small = scenario_.pool_blocks() <= kSmallPoolBlocks;
    const int count = 4 + chance_.Roll(is_small ? 26 : 60);
    const bool is_flood = chance_.OneIn(6);  // the first tenant's, all at once
    int now = 0;
    for (int i = 0; i < count; ++i) {
      RequestScript script;
      const int tenant = chance_.Roll(static_cast<int>(num_tenants()));
      script.tenant =
          base::TenantId(static_cast<std::uint32_t>(is_flood && i % 4 != 0 ? 0 : tenant));
      now += is_flood ? chance_.OneIn(4) : chance_.Roll(chance_.OneIn(2) ? 3 : 12);
      script.arrives_at = now;
      WriteLengths(script, CapacityTokens(script.tenant));
      WriteParameters(script, now);
      WriteFate(static_cast<std::uint32_t>(scenario_.requests.size()), now);
      scenario_.requests.push_back(std::move(script));
    }
  }

  void WriteLengths(RequestScript& script, std::int32_t capacity) {
    if (capacity < 2) capacity = 2;
    // On a large pool most requests are a small part of it.
    std::int32_t most = capacity;
    if (most > 400 && !chance_.OneIn(12)) most = 400;
    const int total = chance_.OneIn(3) ? most + chance_.Roll(2) : 2 + chance_.Roll(most);
    const int longest = chance_.OneIn(2) ? total - 1 : std::min(total - 1, 12);
    const int prompt = 1 + chance_.Roll(std::max(1, longest));
    const auto& document =
        documents_[static_cast<std::size_t>(chance_.Roll(static_cast<int>(documents_.size())))];
    const bool strays = chance_.OneIn(3);
    Chance words(chance_.Seed());
    for (int k = 0; k < prompt; ++k) {
      const bool is_own = strays && k > prompt / 2 && words.OneIn(4);
      const auto place = static_cast<std::size_t>(k) % document.size();
      script.prompt.push_back(is_own ? static_cast<base::TokenId>(words.Roll(kVocabulary))
                                     : document[place]);
    }
    BeginWithPrefix(script.prompt);
    int reply = std::max(1, total - prompt + chance_.Roll(2));
    if (!chance_.OneIn(3)) reply = std::min(reply, 1 + chance_.Roll(24));
    if (!chance_.OneIn(9)) script.fields.max_tokens = reply;
    if (chance_.OneIn(3)) script.fields.n = 1 + chance_.Roll(4);
  }

  void WriteParameters(RequestScript& script, int now) {
    script.fields.priority = chance_.OneIn(5) ? -1 : 0;
    script.fields.temperature = chance_.OneIn(3) ? 0.5f : 1.0f;
    if (chance_.OneIn(9)) {
      script.fields.deadline = AtTick(now + chance_.Roll(60));
    }
    if (chance_.OneIn(12)) script.fields.prompt_logprobs = 0;
    if (chance_.OneIn(16)) script.fields.skip_reading_prefix_cache = true;
    script.one_request_namespace = chance_.OneIn(12);
    script.attach_keys = !chance_.OneIn(4);
    if (chance_.OneIn(6)) script.salt = std::string(1, static_cast<char>('a' + chance_.Roll(4)));
    script.stops_early = chance_.OneIn(2);
  }

  void Happens(int at, Kind kind, std::uint32_t subject) {
    scenario_.events.push_back({.at = at, .kind = kind, .subject = subject});
  }

  void WriteFate(std::uint32_t request, int now) {
    if (chance_.OneIn(7)) {
      const int at = now + chance_.Roll(chance_.OneIn(3) ? 4 : 60);
      Happens(at, Kind::kCancel, request);
      if (chance_.OneIn(4)) Happens(at + chance_.Roll(3), Kind::kCancel, request);
    }
    if (!chance_.OneIn(6)) return;
    int at = now + chance_.Roll(30);
    for (bool again = true; again; again = chance_.OneIn(3)) {
      Happens(at, Kind::kPause, request);
      at += 1 + chance_.Roll(40);
      Happens(at, chance_.OneIn(6) ? Kind::kCutSlow : Kind::kResume, request);
      at += chance_.Roll(10);
    }
  }

  // Events that come again and again from a tick on, about every `period` ticks.
  void Repeats(Kind kind, int period, std::uint32_t num_subjects) {
    const int last = scenario_.requests.back().arrives_at + 150;
    for (int at = chance_.Roll(period); at < last; at += 1 + chance_.Roll(2 * period)) {
      const auto subject = static_cast<std::uint32_t>(chance_.Roll(static_cast<int>(num_subjects)));
      Happens(at, kind, subject);
    }
  }

  void WriteTrouble() {
    if (chance_.OneIn(5)) Repeats(Kind::kFailAwait, 5 + chance_.Roll(40), 1);
    if (chance_.OneIn(8)) Repeats(Kind::kFailSubmit, 5 + chance_.Roll(40), 1);
    if (chance_.OneIn(8)) Repeats(Kind::kSpoilRow, 20 + chance_.Roll(40), 16);
    const auto num_tenants = static_cast<std::uint32_t>(scenario_.config.tenants.size());
    if (chance_.OneIn(5)) Repeats(Kind::kFlush, 20 + chance_.Roll(40), num_tenants + 1);
    if (!scenario_.other_tenants.empty()) {
      scenario_.other_tenants.push_back(scenario_.config.tenants);
      Repeats(Kind::kReconfigure, 30 + chance_.Roll(40), 2);
    }
  }

  Chance chance_;
  Scenario scenario_;
  std::vector<std::vector<base::TokenId>> documents_;
  std::size_t num_prefixes_ = 0;  // the first of the requests
};

}  // namespace

Scenario MakeScenario(Chance chance) { return Author(chance).Write(); }

Scenario Scenario::Without(const std::vector<std::uint32_t>& request_places,
                           const std::vector<std::uint32_t>& event_places) const {
  Scenario rest = *this;
  rest.left_out.assign(requests.size(), false);
  for (const std::uint32_t place : request_places) rest.left_out.at(place) = true;
  rest.events.clear();
  for (std::uint32_t place = 0; place < events.size(); ++place) {
    const Event& event = events[place];
    if (std::ranges::find(event_places, place) != event_places.end()) continue;
    const bool is_of_request = event.kind == Kind::kCancel || event.kind == Kind::kPause ||
                               event.kind == Kind::kResume || event.kind == Kind::kCutSlow;
    if (is_of_request && rest.left_out[event.subject]) continue;
    rest.events.push_back(event);
  }
  return rest;
}

}  // namespace pagoda::simulation
