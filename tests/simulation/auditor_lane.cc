// What outlives its request: the blocks of the public lane, and those that are cached for a time.
#include <algorithm>
#include <span>

#include "base/check.h"
#include "tests/simulation/auditor.h"

namespace pagoda::simulation {

using scheduler::BlockState;
using scheduler::LiveRequest;
using scheduler::Sequence;
using scheduler::StepPlan;

namespace {

// Of a tenant's old blocks so many go in one plan; of all, so many are zeroed.
constexpr std::int32_t kMostInOnePlan = 256;

}  // namespace

// ---- The public lane

// A prefix has ended: its blocks, all of them written, are the lane's from here on.
void Auditor::EnterLane(Book& book) const {
  PAGODA_CHECK_MSG(book.state == BlockState::kOwned && book.num_holders == 1,
                   "audit: what enters the public lane was not one request's alone");
  PAGODA_CHECK(book.name_space >= kOneRequestNamespaces);
  book.prefix = static_cast<std::uint32_t>(book.name_space - kOneRequestNamespaces);
  book.prefix_index = book.table_index;
  const RequestScript& script = scenario_.requests[book.prefix];
  PAGODA_CHECK_MSG(script.is_public_prefix, "audit: a request's block enters the public lane");
  const std::int32_t block_size = state_.config.block_size;
  const auto length = static_cast<std::int32_t>(script.prompt.size());
  const std::int32_t in_block = std::min(block_size, length - book.prefix_index * block_size);
  PAGODA_CHECK_MSG(in_block > 0 && IsWritten(book, static_cast<std::uint32_t>(in_block)),
                   "audit: what enters the public lane is not written");
}

bool Auditor::BeginsLike(base::SlotId slot, std::uint32_t prefix, std::int32_t num_tokens) const {
  const Sequence& sequence = state_.SequenceIn(slot);
  const scheduler::NewRequest& request = *state_.RequestOf(sequence).request;
  const std::vector<base::TokenId>& has = request.choice(sequence.choice).tokens;
  const std::vector<base::TokenId>& wanted = scenario_.requests[prefix].prompt;
  const auto count = static_cast<std::size_t>(num_tokens);
  return count <= has.size() && count <= wanted.size() &&
         std::equal(has.begin(), has.begin() + num_tokens, wanted.begin());
}

void Auditor::CheckLaneEntry(base::SlotId slot, std::int32_t index) {
  const Book& book = books_[state_.tables.at(slot, index).value()];
  const LiveRequest& live = state_.RequestOf(state_.SequenceIn(slot));
  PAGODA_CHECK_MSG(scenario_.requests[book.prefix].IsFor(live.request->tenant),
                   "audit: a public prefix is read by a tenant that it is not for");
  PAGODA_CHECK_MSG(index == book.prefix_index &&
                       BeginsLike(slot, book.prefix, (index + 1) * state_.config.block_size),
                   "audit: a public prefix stands where the tokens are others");
  PAGODA_CHECK_MSG(!live.computes_all() && !ComputesAll(live),
                   "audit: a prompt that is computed whole has a hit");
  ++tally_[Seen::kLaneHits];
}

void Auditor::CheckLaneCopy(const scheduler::BlockCopy& copy) const {
  const Book& source = books_[copy.source.value()];
  const Book& target = books_[copy.target.value()];
  PAGODA_CHECK_MSG(scenario_.requests[source.prefix].IsFor(base::TenantId(target.tenant)),
                   "audit: a public prefix is copied for a tenant that it is not for");
  if (target.holder == kNobody) return;  // it was a victim of the same plan
  const std::int32_t copied =
      source.prefix_index * state_.config.block_size + static_cast<std::int32_t>(copy.num_slots);
  PAGODA_CHECK_MSG(target.table_index == source.prefix_index &&
                       BeginsLike(base::SlotId(target.holder), source.prefix, copied),
                   "audit: a public prefix is copied where the tokens are others");
}

void Auditor::CountLaneMisses(const LiveRequest& live) {
  const std::vector<base::TokenId>& prompt = live.request->tokens();
  for (const RequestScript& script : scenario_.requests) {
    if (!script.is_public_prefix) return;
    if (script.IsFor(live.request->tenant)) continue;
    const auto common = std::ranges::mismatch(script.prompt, prompt).in1 - script.prompt.begin();
    if (common < state_.config.block_size) continue;
    ++tally_[Seen::kLaneMisses];
    return;
  }
}

// ---- Age

// Nothing else in a plan frees what is cached and hands it to nobody.
bool Auditor::OnlyAgeDrops() const {
  return !shares_changed_ && scenario_.config.max_namespaces >= kNamespacesForAll &&
         state_.counters.num_preemptions == num_preemptions_;
}

void Auditor::CheckAges(const StepPlan* plan) {
  const std::int64_t ttl = state_.config.cached_block_ttl_ms;
  if (ttl == 0) return;
  const base::Instant until = now_.PlusMillis(-ttl);
  const bool goes_at_once = scenario_.pool_blocks() <= kMostInOnePlan;
  const bool is_scrubbed = plan != nullptr && !was_suspect_ && goes_at_once;
  const bool only_age_drops = OnlyAgeDrops();
  for (std::uint32_t block = 1; block < books_.size(); ++block) {
    const Book& book = books_[block];
    if (book.state != BlockState::kCached) continue;
    const BlockState now = state_.pool.state(base::BlockId(block));
    if (now == BlockState::kFree && only_age_drops) {
      PAGODA_CHECK_MSG(book.released_after <= until, "audit: a cached block goes before its time");
      PAGODA_CHECK_MSG(!is_scrubbed || was_zeroed_[block], "audit: an aged block is not zeroed");
      ++tally_[Seen::kAgedBlocks];
    }
    if (now != BlockState::kCached) continue;
    PAGODA_CHECK_MSG(plan == nullptr || !goes_at_once || book.released_before > until,
                     "audit: a cached block stays after its time");
  }
}

}  // namespace pagoda::simulation
