#include "engine/journal_disguise.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "engine/journal_replay.h"
#include "scheduler/snapshot.h"

namespace pagoda::engine {
namespace {

using base::Digest256;
using scheduler::BlockKey;
using scheduler::BlockKeyer;
using scheduler::LiveRequest;
using scheduler::NamespaceKey;
using scheduler::NewRequest;
using scheduler::SchedulerState;
using scheduler::SnapshotAccess;

constexpr std::uint8_t kTokenField = 1, kNamespaceField = 2, kLostParentField = 3, kStateField = 4;

// Stands at a place of a sequence, and knows all tokens before it.
using Chain = Digest256;

// Between two blocks: what comes before, and its key in the disguised life.
struct Boundary {
  Chain chain{};
  BlockKey disguised;
};

class Masks {
 public:
  explicit Masks(const Digest256& secret) : secret_(secret) {}

  base::TokenId Next(Chain& chain, base::TokenId token) const {
    base::KeyedHasher hasher(secret_);
    hasher.AddField(kStateField, std::span<const std::uint8_t>(chain));
    hasher.AddField(kTokenField, std::uint64_t{token});
    chain = hasher.Finish();
    base::TokenId masked = 0;
    std::memcpy(&masked, chain.data(), sizeof masked);
    return masked;
  }
  Digest256 Of(std::uint8_t field, const Digest256& bytes) const {
    base::KeyedHasher hasher(secret_);
    hasher.AddField(field, std::span<const std::uint8_t>(bytes));
    return hasher.Finish();
  }
  NamespaceKey Of(const NamespaceKey& key) const {
    return SnapshotAccess::KeyOf(Of(kNamespaceField, key.bytes()));
  }
  // Rewrites a sequence from its beginning on.
  Chain Rewrite(std::span<base::TokenId> tokens) const {
    Chain chain{};
    for (base::TokenId& token : tokens) token = Next(chain, token);
    return chain;
  }

 private:
  Digest256 secret_;
};

BlockKeyer KeyerOf(const SchedulerState& state, base::TenantId tenant, const NamespaceKey& key,
                   std::uint64_t epoch) {
  scheduler::KeyDomain domain = SnapshotAccess::DomainOf(state.cache, tenant);
  domain.epoch = epoch;
  return BlockKeyer(key, domain);
}

// --- The entries of the index: where their sequences began may be known from requests alone.

class EntryDisguise {
 public:
  EntryDisguise(SchedulerState& state, const Masks& masks) : state_(state), masks_(masks) {
    for (NamespaceKey* key : SnapshotAccess::NamespacesOf(state.cache)) real_.push_back(key);
    for (const auto& entry : SnapshotAccess::EntriesOf(state.cache)) {
      waiting_.emplace(entry.parent->bytes, entry);
    }
  }

  // What becomes of everything that follows on a sequence that is known from its beginning.
  void Learn(const NewRequest& request, std::span<const base::TokenId> tokens) {
    const std::uint64_t epoch = state_.cache.epoch(request.tenant);
    const NamespaceKey key = *request.cache_namespace;
    const BlockKeyer real = KeyerOf(state_, request.tenant, key, epoch);
    const BlockKeyer masked = KeyerOf(state_, request.tenant, masks_.Of(key), epoch);
    const auto block_size = static_cast<std::size_t>(state_.block_size());
    BlockKey at = real.root();
    Boundary boundary{.disguised = masked.root()};
    Settle(at, boundary);
    std::vector<base::TokenId> of_block(block_size);
    for (; tokens.size() >= block_size; tokens = tokens.subspan(block_size)) {
      at = real.Key(at, tokens.first(block_size));
      for (std::size_t i = 0; i < block_size; ++i) {
        of_block[i] = masks_.Next(boundary.chain, tokens[i]);
      }
      boundary.disguised = masked.Key(boundary.disguised, of_block);
      Settle(at, boundary);
    }
  }
  void LearnRoots() {
    for (std::size_t place = 0; place < real_.size(); ++place) {
      if (real_[place] == nullptr) continue;
      const base::TenantId tenant = TenantOf(place);
      const std::uint64_t epoch = state_.cache.epoch(tenant);
      const BlockKey root = KeyerOf(state_, tenant, *real_[place], epoch).root();
      const auto masked = KeyerOf(state_, tenant, masks_.Of(*real_[place]), epoch);
      Settle(root, {.disguised = masked.root()});
    }
  }
  bool knows_all() const { return waiting_.empty(); }
  // What follows on blocks that are gone, and that nobody computes again in this segment.
  void GiveUpTheRest() {
    std::set<Digest256> keys, lost;
    for (const auto& [parent, entry] : waiting_) keys.insert(entry.key->bytes);
    for (const auto& [parent, entry] : waiting_) {
      if (!keys.contains(parent)) lost.insert(parent);
    }
    for (const Digest256& parent : lost) {
      const Digest256 masked = masks_.Of(kLostParentField, parent);
      Settle(BlockKey{parent}, {.chain = masked, .disguised = BlockKey{masked}});
    }
  }
  // After everything else about the state has been read.
  void RewriteNamespaces() {
    for (NamespaceKey* key : real_) {
      if (key != nullptr) *key = masks_.Of(*key);
    }
  }

 private:
  base::TenantId TenantOf(std::size_t place) const {
    return SnapshotAccess::TenantOf(state_.cache, static_cast<std::uint32_t>(place));
  }

  // Rewrites the entries behind this place, and those behind them.
  void Settle(const BlockKey& at, const Boundary& boundary) {
    std::vector<std::pair<BlockKey, Boundary>> known = {{at, boundary}};
    while (!known.empty()) {
      const auto [parent, before] = known.back();
      known.pop_back();
      const auto [first, last] = waiting_.equal_range(parent.bytes);
      for (auto it = first; it != last; ++it) {
        SnapshotAccess::Entry entry = it->second;
        const base::TenantId tenant = TenantOf(entry.namespace_place);
        const auto keyer = KeyerOf(state_, tenant, masks_.Of(*real_[entry.namespace_place]),
                                   state_.cache.epoch(tenant));
        Boundary behind = before;
        for (base::TokenId& token : entry.tokens) token = masks_.Next(behind.chain, token);
        behind.disguised = keyer.Key(before.disguised, entry.tokens);
        known.emplace_back(*entry.key, behind);
        *entry.key = behind.disguised;
        *entry.parent = before.disguised;
      }
      waiting_.erase(first, last);
    }
  }

  SchedulerState& state_;
  const Masks& masks_;
  std::vector<NamespaceKey*> real_;                          // by place
  std::multimap<Digest256, SnapshotAccess::Entry> waiting_;  // by parent
};

// --- Requests

void RewriteRequest(const SchedulerState& state, const Masks& masks, NewRequest& request,
                    std::uint64_t epoch) {
  if (request.cache_namespace.has_value()) {
    request.cache_namespace = masks.Of(*request.cache_namespace);
  }
  for (scheduler::Choice& choice : request.choices()) {
    masks.Rewrite(choice.tokens);
    if (choice.keys.empty()) continue;
    const std::size_t num_keys = choice.keys.size();
    choice.keys.clear();
    const BlockKeyer keyer = KeyerOf(state, request.tenant, *request.cache_namespace, epoch);
    const std::size_t covered = num_keys * static_cast<std::size_t>(state.block_size());
    keyer.ExtendKeys(std::span(choice.tokens).first(covered), choice.keys);
  }
}

// The token that a sequence keeps beside its request, if it keeps one.
template <typename Sequence>
void RewriteNewest(Sequence& sequence, const scheduler::Choice& choice) {
  if constexpr (requires { sequence.newest_token; }) {
    sequence.newest_token = choice.tokens.back();
  }
}

void LearnRequest(EntryDisguise& entries, const NewRequest& request) {
  if (request.one_request_namespace || !request.cache_namespace.has_value()) return;
  for (const scheduler::Choice& choice : request.choices()) entries.Learn(request, choice.tokens);
}

// Plays the segment to learn the sequences that are in it.
absl::Status LearnFromLater(const JournalSegment& segment, EntryDisguise& entries) {
  PAGODA_ASSIGN_OR_RETURN(const auto replay, JournalReplay::Open(segment));
  while (!replay->at_end()) {
    PAGODA_RETURN_IF_ERROR(replay->Read());
    if (replay->at_end()) break;
    PAGODA_RETURN_IF_ERROR(replay->Apply());
    if (replay->record().kind != RecordKind::kTakeFinished) continue;
    for (const auto& event : replay->finished()) LearnRequest(entries, event.request);
  }
  for (const LiveRequest& live : replay->state().requests.all()) {
    if (live.phase != LiveRequest::Phase::kVacant) LearnRequest(entries, *live.request);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint8_t>> DisguiseSnapshot(const JournalSegment& segment,
                                                           const Masks& masks) {
  PAGODA_ASSIGN_OR_RETURN(const auto state, scheduler::ReadSnapshot(segment.snapshot));
  EntryDisguise entries(*state, masks);
  entries.LearnRoots();
  for (const LiveRequest& live : state->requests.all()) {
    if (live.phase != LiveRequest::Phase::kVacant) LearnRequest(entries, *live.request);
  }
  if (!entries.knows_all()) PAGODA_RETURN_IF_ERROR(LearnFromLater(segment, entries));
  entries.GiveUpTheRest();
  entries.RewriteNamespaces();
  for (const std::span<base::TokenId> prefix : SnapshotAccess::PrefixesOf(state->public_lane)) {
    masks.Rewrite(prefix);
  }
  for (std::uint32_t i = 0; i < state->requests.capacity(); ++i) {
    LiveRequest& live = state->requests[scheduler::RequestIndex(i)];
    if (live.phase == LiveRequest::Phase::kVacant) continue;
    RewriteRequest(*state, masks, *live.request, live.key_epoch);
    for (const scheduler::Choice& choice : live.request->choices()) {
      if (choice.slot.has_value()) RewriteNewest(state->SequenceIn(*choice.slot), choice);
    }
  }
  std::vector<std::uint8_t> bytes(segment.snapshot.size());
  PAGODA_CHECK(scheduler::WriteSnapshot(*state, bytes) == bytes.size());
  return bytes;
}

// --- Records

class RecordDisguise {
 public:
  RecordDisguise(const JournalReplay& replay, const Masks& masks)
      : state_(replay.state()), masks_(masks) {
    for (const LiveRequest& live : state_.requests.all()) {
      if (live.phase != LiveRequest::Phase::kVacant) Remember(*live.request);
    }
  }

  // Returns whether the record has changed.
  bool Rewrite(JournalRecord& record) {
    switch (record.kind) {
      case RecordKind::kAdd:
      case RecordKind::kAddPublicPrefix:
        Remember(*record.request);
        RewriteRequest(state_, masks_, *record.request, record.request->epoch());
        return true;
      case RecordKind::kComplete:
        RewriteResult(record);
        return true;
      default:
        return false;
    }
  }
  void Forget(std::span<const scheduler::FinishEvent> finished) {
    for (const auto& event : finished) known_.erase(event.request.id);
  }

 private:
  struct KnownChoice {
    std::vector<base::TokenId> masked;
    Chain chain{};
  };

  void Remember(const NewRequest& request) {
    std::vector<KnownChoice>& choices = known_[request.id];
    choices.clear();
    for (const scheduler::Choice& choice : request.choices()) {
      KnownChoice& known = choices.emplace_back();
      known.masked = choice.tokens;
      known.chain = masks_.Rewrite(known.masked);
    }
  }

  // The choice that a sample is of, as the scheduler finds it; null when nobody takes it.
  KnownChoice* ChoiceOf(const JournalRecord& record, const scheduler::SampleResult& sample) {
    const scheduler::JobRecord* job = state_.jobs.OldestInFlight();
    if (job == nullptr || job->job != record.result.job) return nullptr;
    const scheduler::DraftItem* item = job->ItemOf(sample.slot, sample.slot_generation);
    if (item == nullptr) return nullptr;
    const auto found = known_.find(item->request);
    if (found == known_.end() || sample.choice >= found->second.size()) return nullptr;
    return &found->second[sample.choice];
  }

  // A token drawn again is the one that is known; the others are new, or nobody's.
  void RewriteResult(JournalRecord& record) {
    for (std::size_t i = 0; i < record.result.samples.size(); ++i) {
      const scheduler::SampleResult& sample = record.result.samples[i];
      const auto tokens =
          std::span(record.result.tokens).subspan(sample.tokens.begin, sample.tokens.count);
      KnownChoice* known = ChoiceOf(record, sample);
      const std::size_t num_known = known == nullptr ? 0 : known->masked.size();
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        const std::size_t position = sample.position + t;
        if (known != nullptr && position < num_known) {
          tokens[t] = known->masked[position];
        } else if (known != nullptr && t < record.outcomes[i].num_accepted) {
          tokens[t] = masks_.Next(known->chain, tokens[t]);
          known->masked.push_back(tokens[t]);
        } else {
          tokens[t] = 0;
        }
      }
    }
  }

  const SchedulerState& state_;
  const Masks& masks_;
  std::map<base::RequestId, std::vector<KnownChoice>> known_;
};

}  // namespace

absl::StatusOr<StoredSegment> Disguise(const JournalSegment& segment, const Digest256& secret) {
  const Masks masks(secret);
  StoredSegment stored{.number = segment.number,
                       .opening_digest = segment.opening_digest,
                       .follows_on = segment.follows_on};
  PAGODA_ASSIGN_OR_RETURN(stored.snapshot, DisguiseSnapshot(segment, masks));
  stored.records.assign(segment.records.begin(), segment.records.end());
  PAGODA_ASSIGN_OR_RETURN(const auto replay, JournalReplay::Open(segment));
  RecordDisguise disguise(*replay, masks);
  while (!replay->at_end()) {
    PAGODA_RETURN_IF_ERROR(replay->Read());
    JournalSegment one = segment;  // the record is read again: playing it takes it away
    one.records = segment.records.subspan(replay->record_begin());
    JournalRecord record;
    scheduler::SnapshotArchive in(one.records);
    VisitRecord(in, record, replay->state().block_size());
    if (disguise.Rewrite(record)) {
      scheduler::SnapshotArchive out(
          std::span(stored.records).subspan(replay->record_begin(), in.position()));
      VisitRecord(out, record, replay->state().block_size());
      PAGODA_CHECK(out.ok() && out.position() == in.position());
    }
    if (replay->at_end()) break;
    PAGODA_RETURN_IF_ERROR(replay->Apply());
    if (replay->record().kind == RecordKind::kTakeFinished) disguise.Forget(replay->finished());
  }
  return stored;
}

}  // namespace pagoda::engine
