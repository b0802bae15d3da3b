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

  // The block whose content is `tokens` after `parent`, full or partial. Equal keys do not suffice:
  // parent and tokens are compared too, so a collision of the hash is a miss.
  std::optional<base::BlockId> Find(const BlockKey& key, const BlockKey& parent,
                                    std::span<const base::TokenId> tokens) const;
  // Fills `hits` with the blocks of the longest indexed prefix and returns its number of blocks.
  // `keys` are those of the full blocks of `tokens`. Changes nothing: recency moves only at
  // release.
  std::size_t Match(std::span<const BlockKey> keys, std::span<const base::TokenId> tokens,
                    std::span<base::BlockId> hits) const;
  // Indexed blocks whose parent is `parent`, newest first: FirstChild, then NextChild of the one
  // before.
  std::optional<base::BlockId> FirstChild(const BlockKey& parent) const;
  std::optional<base::BlockId> NextChild(base::BlockId child) const;

 private:
  friend class PrefixCache;
  NamespaceIndex(PrefixCache& cache, std::uint32_t index, const NamespaceKey& key,
                 const BlockKeyer& keyer)
      : cache_(&cache), index_(index), key_(key), keyer_(keyer) {}
  std::optional<base::BlockId> ChildFrom(std::uint32_t item, const BlockKey& parent) const;

  PrefixCache* cache_;
  std::uint32_t index_;
  NamespaceKey key_;
  BlockKeyer keyer_;
  std::int32_t num_references_ = 0;  // running requests
  std::int32_t num_entries_ = 0;
  std::uint64_t last_opened_ = 0;
};

// Which block holds which content. Entries are made by completed jobs only (completion.cc) and
// dropped when the block is handed out, freed or flushed, so there is at most one entry per block:
// an entry lives inside its block's record. Owner: SchedulerState. Never allocates after
// construction.
class PrefixCache {
 public:
  struct Options {
    std::int32_t num_blocks = 0;
    std::int32_t max_namespaces = 0;
    KeyDomain key_domain;
  };
  explicit PrefixCache(const Options& options);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  std::uint64_t epoch() const { return domain_.epoch; }
  std::int32_t num_entries() const { return num_entries_; }
  std::int32_t num_namespaces() const { return num_namespaces_; }

  // The open namespace of this key, or null: nothing is indexed under it.
  const NamespaceIndex* FindNamespace(const NamespaceKey& key) const;
  // Whether Open(key) needs a place that only CloseableNamespace() can give.
  bool NeedsRoom(const NamespaceKey& key) const;
  // The namespace opened longest ago that no running request refers to. Its blocks must be dropped
  // before Open.
  std::uint32_t CloseableNamespace() const;
  // Opens it if need be, and counts a reference until Close. Requires: !NeedsRoom(key).
  NamespaceIndex& Open(const NamespaceKey& key);
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
  std::span<const base::TokenId> tokens_of(base::BlockId block) const;
  // Requires: the block has an entry.
  void Forget(base::BlockId block);

  // All keys change: nothing made before is found again. Requires: no entries.
  void AdvanceEpoch();

  void CheckInvariants() const;

 private:
  friend class NamespaceIndex;
  static constexpr std::uint32_t kNone = 0xffffffffu;

  struct Entry {
    BlockKey key, parent;
    std::uint32_t namespace_index = kNone;
    std::int32_t num_tokens = 0;
  };

  // A key is already a hash: its first bytes choose the chain.
  static std::uint64_t HashOf(std::span<const std::uint8_t> bytes);
  void FreeNamespaceIfUnused(std::uint32_t index);

  KeyDomain domain_;
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
