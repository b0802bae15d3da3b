// Every block's entry hangs in two chains: by its own key, to be found, and by its parent's key, to
// be found as the copy source of a partial block. Both are keyed by hashes under a namespace key,
// so entries of two namespaces meet in a chain only by chance; the namespace is compared all the
// same.
#include "scheduler/prefix_cache.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "scheduler/mutants.h"

namespace pagoda::scheduler {

std::optional<base::BlockId> NamespaceIndex::Find(const BlockKey& key, const BlockKey& parent,
                                                  std::span<const base::TokenId> tokens) const {
  const PrefixCache& cache = *cache_;
  const std::span<const std::uint8_t> wanted = cache.KeyBytes(key);
  for (std::uint32_t item = cache.by_key_.First(PrefixCache::HashOf(wanted));
       item != HashChains::kEnd; item = cache.by_key_.Next(item)) {
    const PrefixCache::Entry& entry = cache.entries_[item];
    if (entry.namespace_index != index_) continue;
    if (!std::ranges::equal(cache.KeyBytes(entry.key), wanted)) continue;
    const std::span<const base::TokenId> found = cache.tokens_of(base::BlockId(item));
    const bool equal = PAGODA_MUTANT(kIgnoresTokens) || std::ranges::equal(found, tokens);
    if (entry.parent == parent && equal) return base::BlockId(item);
  }
  return std::nullopt;
}

std::size_t NamespaceIndex::Match(std::span<const BlockKey> keys,
                                  std::span<const base::TokenId> tokens,
                                  std::span<base::BlockId> hits, std::size_t num_found) const {
  const auto block_size = static_cast<std::size_t>(keyer_.block_size());
  const std::size_t most = std::min(keys.size(), tokens.size() / block_size);
  for (std::size_t k = num_found; k < most; ++k) {
    const BlockKey& parent = k == 0 ? keyer_.root() : keys[k - 1];
    const auto hit = Find(keys[k], parent, tokens.subspan(k * block_size, block_size));
    if (PAGODA_MUTANT(kMatchPastAGap) && !hit.has_value() && k > 0) continue;
    if (!hit.has_value()) return k;
    hits[k] = *hit;
  }
  return std::max(most, num_found);
}

std::optional<base::BlockId> NamespaceIndex::FirstChild(const BlockKey& parent) const {
  return ChildFrom(cache_->by_parent_.First(PrefixCache::HashOf(parent.bytes)), parent);
}

std::optional<base::BlockId> NamespaceIndex::NextChild(base::BlockId child) const {
  return ChildFrom(cache_->by_parent_.Next(child.value()), cache_->entries_[child.value()].parent);
}

std::optional<base::BlockId> NamespaceIndex::ChildFrom(std::uint32_t item,
                                                       const BlockKey& parent) const {
  for (; item != HashChains::kEnd; item = cache_->by_parent_.Next(item)) {
    const PrefixCache::Entry& entry = cache_->entries_[item];
    if (entry.namespace_index == index_ && entry.parent == parent) return base::BlockId(item);
  }
  return std::nullopt;
}

PrefixCache::PrefixCache(const Options& options)
    : block_size_(static_cast<std::size_t>(options.key_domain.block_size)),
      num_key_bytes_(options.num_key_bytes),
      max_namespaces_(options.max_namespaces),
      tenants_(static_cast<std::size_t>(options.num_tenants), Tenant{.domain = options.key_domain}),
      entries_(static_cast<std::size_t>(options.num_blocks)),
      tokens_(static_cast<std::size_t>(options.num_blocks) * block_size_),
      by_key_(entries_.size()),
      by_parent_(entries_.size()),
      namespaces_(static_cast<std::size_t>(options.max_namespaces) * tenants_.size()),
      namespaces_by_key_(namespaces_.size()) {
  free_namespaces_.reserve(namespaces_.size());
  for (std::size_t i = namespaces_.size(); i-- > 0;) {
    free_namespaces_.push_back(static_cast<std::uint32_t>(i));
  }
}

std::uint64_t PrefixCache::HashOf(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0;
  std::memcpy(&hash, bytes.data(), std::min(bytes.size(), sizeof(hash)));
  return hash;
}

const NamespaceIndex* PrefixCache::FindNamespace(const NamespaceKey& key) const {
  for (std::uint32_t item = namespaces_by_key_.First(HashOf(key.bytes())); item != HashChains::kEnd;
       item = namespaces_by_key_.Next(item)) {
    if (namespaces_[item]->key_ == key) return &*namespaces_[item];
  }
  return nullptr;
}

bool PrefixCache::NeedsRoom(base::TenantId tenant, const NamespaceKey& key) const {
  return tenants_[tenant.value()].num_namespaces == max_namespaces_ &&
         FindNamespace(key) == nullptr;
}

std::uint32_t PrefixCache::CloseableNamespace(base::TenantId tenant) const {
  std::uint32_t oldest = kNone;
  for (const auto& index : namespaces_) {
    if (!index.has_value() || index->tenant_ != tenant || index->num_references_ > 0) continue;
    if (oldest == kNone || index->last_opened_ < namespaces_[oldest]->last_opened_) {
      oldest = index->index_;
    }
  }
  PAGODA_CHECK_MSG(oldest != kNone, "more running requests than namespaces");
  return oldest;
}

NamespaceIndex& PrefixCache::Open(base::TenantId tenant, const NamespaceKey& key) {
  PAGODA_CHECK(!NeedsRoom(tenant, key));
  const NamespaceIndex* found = FindNamespace(key);
  std::uint32_t place = found == nullptr ? kNone : found->index_;
  if (found == nullptr) {
    PAGODA_CHECK(!free_namespaces_.empty());
    place = free_namespaces_.back();
    free_namespaces_.pop_back();
    namespaces_[place].emplace(NamespaceIndex(*this, place, tenant, key, KeyerFor(tenant, key)));
    namespaces_by_key_.PushFront(HashOf(key.bytes()), place);
    ++tenants_[tenant.value()].num_namespaces;
    ++num_namespaces_;
  }
  NamespaceIndex& index = *namespaces_[place];
  PAGODA_CHECK_MSG(index.tenant_ == tenant, "two tenants have one namespace");
  ++index.num_references_;
  index.last_opened_ = ++openings_;
  return index;
}

void PrefixCache::Close(NamespaceIndex& index) {
  PAGODA_CHECK(index.num_references_ > 0);
  --index.num_references_;
  FreeNamespaceIfUnused(index.index_);
}

void PrefixCache::Insert(NamespaceIndex& index, base::BlockId block, const BlockKey& key,
                         const BlockKey& parent, std::span<const base::TokenId> tokens) {
  PAGODA_CHECK(!has_entry(block));
  PAGODA_CHECK(!tokens.empty());
  PAGODA_CHECK(tokens.size() <= block_size_);
  Entry& entry = entries_[block.value()];
  entry = {key, parent, index.index_, static_cast<std::int32_t>(tokens.size())};
  std::ranges::copy(tokens,
                    tokens_.begin() + static_cast<std::ptrdiff_t>(block.value() * block_size_));
  by_key_.PushFront(HashOf(KeyBytes(key)), block.value());
  by_parent_.PushFront(HashOf(parent.bytes), block.value());
  index.num_entries_ += !PAGODA_MUTANT(kEntryNotCounted);
  ++num_entries_;
}

std::span<const base::TokenId> PrefixCache::tokens_of(base::BlockId block) const {
  return std::span(tokens_).subspan(block.value() * block_size_,
                                    static_cast<std::size_t>(entries_[block.value()].num_tokens));
}

void PrefixCache::Forget(base::BlockId block) {
  PAGODA_CHECK(has_entry(block));
  Entry& entry = entries_[block.value()];
  if (!PAGODA_MUTANT(kKeyChainKept)) by_key_.Remove(HashOf(KeyBytes(entry.key)), block.value());
  if (!PAGODA_MUTANT(kParentChainKept)) {
    by_parent_.Remove(HashOf(entry.parent.bytes), block.value());
  }
  const std::uint32_t place = entry.namespace_index;
  entry = Entry{};
  --namespaces_[place]->num_entries_;
  --num_entries_;
  FreeNamespaceIfUnused(place);
}

void PrefixCache::FreeNamespaceIfUnused(std::uint32_t place) {
  const NamespaceIndex& index = *namespaces_[place];
  const bool is_referred = index.num_references_ > 0 && !PAGODA_MUTANT(kNamespaceFreedInUse);
  if (is_referred || index.num_entries_ > 0) return;
  namespaces_by_key_.Remove(HashOf(index.key_.bytes()), place);
  --tenants_[index.tenant_.value()].num_namespaces;
  namespaces_[place].reset();
  free_namespaces_.push_back(place);
  --num_namespaces_;
}

void PrefixCache::AdvanceEpoch(base::TenantId tenant) {
  tenants_[tenant.value()].domain.epoch += !PAGODA_MUTANT(kEpochStands);
  for (auto& index : namespaces_) {
    if (!index.has_value() || index->tenant_ != tenant) continue;
    PAGODA_CHECK(index->num_entries_ == 0);
    index->keyer_ = KeyerFor(tenant, index->key_);
  }
}

void PrefixCache::CheckInvariants() const {
  std::vector<std::int32_t> counted(namespaces_.size(), 0);
  std::int32_t entries = 0;
  for (std::size_t block = 0; block < entries_.size(); ++block) {
    const Entry& entry = entries_[block];
    if (entry.namespace_index == kNone) continue;
    ++entries;
    PAGODA_CHECK(namespaces_[entry.namespace_index].has_value());
    ++counted[entry.namespace_index];
    const base::BlockId id(static_cast<std::uint32_t>(block));
    const auto found =
        namespaces_[entry.namespace_index]->Find(entry.key, entry.parent, tokens_of(id));
    PAGODA_CHECK(found == id);
  }
  PAGODA_CHECK(entries == num_entries_);
  std::vector<std::int32_t> of_tenant(tenants_.size(), 0);
  for (std::size_t i = 0; i < namespaces_.size(); ++i) {
    if (!namespaces_[i].has_value()) continue;
    const NamespaceIndex& index = *namespaces_[i];
    PAGODA_CHECK(index.num_entries_ == counted[i]);
    PAGODA_CHECK(index.num_references_ + index.num_entries_ > 0);
    PAGODA_CHECK(index.keyer_.epoch() == epoch(index.tenant_));
    PAGODA_CHECK(++of_tenant[index.tenant_.value()] <= max_namespaces_);
  }
  for (std::size_t t = 0; t < tenants_.size(); ++t) {
    PAGODA_CHECK(tenants_[t].num_namespaces == of_tenant[t]);
  }
}

}  // namespace pagoda::scheduler
