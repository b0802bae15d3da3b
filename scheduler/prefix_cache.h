#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "scheduler/block_keys.h"
#include "scheduler/hash_chains.h"
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

class PrefixCache;

// The index entries of one namespace. All reads of the cache are its members, so a read without a
// namespace, or in two, does not compile. Lives in the cache's slab; valid while it is referenced
// or has entries.
class NamespaceIndex {
 public:
  const BlockKeyer& keyer() const { return keyer_; }
  // Its place in the slab; reused once nothing refers to it and no entry is left.
  std::uint32_t place() const { return index_; }
  base::TenantId tenant() const { return tenant_; }

  // The block whose content is `tokens` after `parent`, full or partial. Equal keys do not suffice:
  // parent and tokens are compared too, so a collision of the hash is a miss.
  std::optional<base::BlockId> Find(const BlockKey& key, const BlockKey& parent,
                                    std::span<const base::TokenId> tokens) const;
  // Fills `hits` with the blocks of the longest indexed prefix and returns its number of blocks.
  // `keys` are those of the full blocks of `tokens`, of which the first `num_found` are in `hits`
  // already. Changes nothing: recency moves only at release.
  std::size_t Match(std::span<const BlockKey> keys, std::span<const base::TokenId> tokens,
                    std::span<base::BlockId> hits, std::size_t num_found = 0) const;
  // Indexed blocks whose parent is `parent`, newest first: FirstChild, then NextChild of the one
  // before.
  std::optional<base::BlockId> FirstChild(const BlockKey& parent) const;
  std::optional<base::BlockId> NextChild(base::BlockId child) const;

 private:
  friend struct SnapshotAccess;
  friend class PrefixCache;
  NamespaceIndex(PrefixCache& cache, std::uint32_t index, base::TenantId tenant,
                 const NamespaceKey& key, const BlockKeyer& keyer)
      : cache_(&cache), index_(index), tenant_(tenant), key_(key), keyer_(keyer) {}
  std::optional<base::BlockId> ChildFrom(std::uint32_t item, const BlockKey& parent) const;

  PrefixCache* cache_;
  std::uint32_t index_;
  base::TenantId tenant_;
  NamespaceKey key_;
  BlockKeyer keyer_;
  std::int32_t num_references_ = 0;  // running requests
  std::int32_t num_entries_ = 0;
  std::uint64_t last_opened_ = 0;
};

// Which block holds which content. Entries are made by completed jobs only (completion.cc) and
// dropped when the block is handed out, freed or flushed, so there is at most one entry per block:
// an entry lives inside its block's record. Each tenant has its own epoch and its own bound on
// namespaces, so that none of them can close, or make unfindable, what another has. Owner:
// SchedulerState. Never allocates after construction.
class PrefixCache {
 public:
  struct Options {
    std::int32_t num_blocks = 0;
    std::int32_t num_tenants = 1;
    std::int32_t max_namespaces = 0;  // of each tenant
    KeyDomain key_domain;             // its epoch is every tenant's first
    // Leading bytes of a block's key that are looked at. Tests make it 1, so that keys collide all
    // the time; parents are compared whole.
    std::size_t num_key_bytes = sizeof(BlockKey::bytes);
  };
  explicit PrefixCache(const Options& options);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  std::uint64_t epoch(base::TenantId tenant) const { return tenants_[tenant.value()].domain.epoch; }
  std::int32_t num_entries() const { return num_entries_; }
  std::int32_t num_namespaces() const { return num_namespaces_; }

  // The open namespace of this key, or null: nothing is indexed under it.
  const NamespaceIndex* FindNamespace(const NamespaceKey& key) const;
  // Whether Open needs a place that only CloseableNamespace can give.
  bool NeedsRoom(base::TenantId tenant, const NamespaceKey& key) const;
  // The tenant's namespace opened longest ago that no running request refers to. Its blocks must be
  // dropped before Open.
  std::uint32_t CloseableNamespace(base::TenantId tenant) const;
  // Opens it if need be, and counts a reference until Close. Requires: not NeedsRoom; a key is one
  // tenant's alone.
  NamespaceIndex& Open(base::TenantId tenant, const NamespaceKey& key);
  void Close(NamespaceIndex& index);

  // Requires: the block has no entry, and Find gives none for this content.
  void Insert(NamespaceIndex& index, base::BlockId block, const BlockKey& key,
              const BlockKey& parent, std::span<const base::TokenId> tokens);
  bool has_entry(base::BlockId block) const {
    return entries_[block.value()].namespace_index != kNone;
  }
  std::uint32_t namespace_of(base::BlockId block) const {
    return entries_[block.value()].namespace_index;
  }
  // Requires: the block has an entry.
  base::TenantId tenant_of(base::BlockId block) const {
    return namespaces_[namespace_of(block)]->tenant_;
  }
  const BlockKey& key_of(base::BlockId block) const { return entries_[block.value()].key; }
  std::span<const base::TokenId> tokens_of(base::BlockId block) const;
  // Have the processor fetch what a caller will soon ask for. Of the block's entry, there or to be
  // made: whether it is there, or all of it; and where the chains of a key and its parent begin.
  void FetchHasEntry(base::BlockId block) const {
    __builtin_prefetch(&entries_[block.value()].namespace_index);
  }
  void FetchChains(const BlockKey& key, const BlockKey& parent) const {
    by_key_.FetchFirst(HashOf(KeyBytes(key)));
    by_parent_.FetchFirst(HashOf(parent.bytes));
  }
  void FetchChainsOf(base::BlockId block) const {
    const Entry& entry = entries_[block.value()];
    FetchChains(entry.key, entry.parent);
  }
  void FetchEntry(base::BlockId block) const {
    const Entry* entry = &entries_[block.value()];
    __builtin_prefetch(entry, /*rw=*/1);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(entry) + sizeof(Entry) - 1, /*rw=*/1);
    __builtin_prefetch(tokens_.data() + block.value() * block_size_, /*rw=*/1);
    by_key_.Fetch(block.value());
    by_parent_.Fetch(block.value());
  }
  // Requires: the block has an entry.
  void Forget(base::BlockId block);

  // All keys of the tenant change: nothing made before is found again. Requires: it has no entries.
  void AdvanceEpoch(base::TenantId tenant);

  void CheckInvariants() const;

 private:
  friend struct SnapshotAccess;
  friend class NamespaceIndex;
  static constexpr std::uint32_t kNone = 0xffffffffu;

  struct Entry {
    BlockKey key, parent;
    std::uint32_t namespace_index = kNone;
    std::int32_t num_tokens = 0;
  };

  struct Tenant {
    KeyDomain domain;  // with its own epoch
    std::int32_t num_namespaces = 0;
  };

  // A key is already a hash: its first bytes choose the chain.
  static std::uint64_t HashOf(std::span<const std::uint8_t> bytes);
  std::span<const std::uint8_t> KeyBytes(const BlockKey& key) const {
    return std::span(key.bytes).first(num_key_bytes_);
  }
  BlockKeyer KeyerFor(base::TenantId tenant, const NamespaceKey& key) const {
    return BlockKeyer(key, tenants_[tenant.value()].domain);
  }
  void FreeNamespaceIfUnused(std::uint32_t index);

  std::size_t block_size_;
  std::size_t num_key_bytes_;
  std::int32_t max_namespaces_;  // of each tenant
  std::vector<Tenant> tenants_;
  std::vector<Entry> entries_;         // by block
  std::vector<base::TokenId> tokens_;  // by block, block_size each
  HashChains by_key_, by_parent_;
  std::vector<std::optional<NamespaceIndex>> namespaces_;  // slab
  std::vector<std::uint32_t> free_namespaces_;
  HashChains namespaces_by_key_;
  std::int32_t num_entries_ = 0;
  std::int32_t num_namespaces_ = 0;
  std::uint64_t openings_ = 0;
};

}  // namespace pagoda::scheduler
