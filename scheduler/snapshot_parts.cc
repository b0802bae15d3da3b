#include <algorithm>

#include "scheduler/snapshot.h"

namespace pagoda::scheduler {

void SnapshotAccess::Visit(SnapshotArchive& a, BlockPool& pool) {
  const auto list = [](SnapshotArchive& archive, BlockPool::List& each) {
    archive(each.first, each.last, each.size);
  };
  a.Fixed(pool.blocks_, [](SnapshotArchive& archive, BlockPool::Block& block) {
    archive(block.state, block.after, block.tenant, block.num_holders, block.holder_xor,
            block.previous, block.next, block.generation, block.released_at, block.released_when,
            block.last_job, block.must_scrub);
  });
  a.Fixed(pool.accounts_, [&list](SnapshotArchive& archive, BlockPool::Account& account) {
    archive(account.share.reserve_blocks, account.share.isolated, account.used, account.pinned,
            account.retiring, account.shared);
    list(archive, account.cached);
  });
  list(a, pool.free_);
  a.Fixed(pool.retiring_, list);
  a.Fixed(pool.exclusive_);
  for (std::int32_t& count : pool.counts_) a(count);
  a(pool.public_blocks_, pool.common_, pool.watermark_, pool.num_evictions_, pool.releases_);
  a.Growing(pool.to_scrub_, pool.blocks_.size());
  a.Fixed(pool.scrub_places_);
  a(pool.fenced_, pool.now_);
}

void SnapshotAccess::VisitNamespace(SnapshotArchive& a, PrefixCache& cache, std::uint32_t place) {
  std::optional<NamespaceIndex>& index = cache.namespaces_[place];
  bool is_open = index.has_value();
  a(is_open);
  if (!is_open || !a.ok()) return;
  base::TenantId tenant = a.is_reading() ? base::TenantId{} : index->tenant_;
  NamespaceKey key = a.is_reading() ? NamespaceKey({}) : index->key_;
  a(tenant);
  a.Bytes(key.bytes_);
  if (tenant.value() >= cache.tenants_.size()) a.Fail();
  if (!a.ok()) return;
  if (a.is_reading()) {
    index.emplace(NamespaceIndex(cache, place, tenant, key, cache.KeyerFor(tenant, key)));
    cache.namespaces_by_key_.PushFront(PrefixCache::HashOf(key.bytes()), place);
  }
  a(index->num_references_, index->num_entries_, index->last_opened_);
}

// Bucket by bucket, the oldest child of a parent first: entered again in this order, every parent
// has its children in the order it had.
void SnapshotAccess::WriteEntries(SnapshotArchive& a, PrefixCache& cache) {
  const HashChains& chains = cache.by_parent_;
  for (const std::uint32_t head : chains.heads_) {
    std::uint32_t item = head;
    while (item != HashChains::kEnd && chains.links_[item].next != HashChains::kEnd) {
      item = chains.links_[item].next;
    }
    for (; item != HashChains::kEnd; item = chains.links_[item].previous) {
      PrefixCache::Entry& entry = cache.entries_[item];
      a(item, entry.namespace_index, entry.num_tokens);
      a.Bytes(entry.key.bytes);
      a.Bytes(entry.parent.bytes);
      base::TokenId* tokens = cache.tokens_.data() + item * cache.block_size_;
      for (std::int32_t i = 0; i < entry.num_tokens; ++i) a(tokens[i]);
    }
  }
}

void SnapshotAccess::ReadEntries(SnapshotArchive& a, PrefixCache& cache) {
  for (std::int32_t i = 0; i < cache.num_entries_; ++i) {
    std::uint32_t item = 0;
    PrefixCache::Entry entry;
    a(item, entry.namespace_index, entry.num_tokens);
    a.Bytes(entry.key.bytes);
    a.Bytes(entry.parent.bytes);
    const bool is_possible =
        a.ok() && item < cache.entries_.size() && !cache.has_entry(base::BlockId(item)) &&
        entry.namespace_index < cache.namespaces_.size() &&
        cache.namespaces_[entry.namespace_index].has_value() && entry.num_tokens > 0 &&
        static_cast<std::size_t>(entry.num_tokens) <= cache.block_size_;
    if (!is_possible) return a.Fail();
    base::TokenId* tokens = cache.tokens_.data() + item * cache.block_size_;
    for (std::int32_t t = 0; t < entry.num_tokens; ++t) a(tokens[t]);
    cache.entries_[item] = entry;
    cache.by_key_.PushFront(PrefixCache::HashOf(cache.KeyBytes(entry.key)), item);
    cache.by_parent_.PushFront(PrefixCache::HashOf(entry.parent.bytes), item);
  }
}

void SnapshotAccess::Visit(SnapshotArchive& a, PrefixCache& cache) {
  a.Fixed(cache.tenants_, [](SnapshotArchive& archive, PrefixCache::Tenant& tenant) {
    archive(tenant.domain.epoch, tenant.num_namespaces);
  });
  for (std::uint32_t place = 0; a.ok() && place < cache.namespaces_.size(); ++place) {
    VisitNamespace(a, cache, place);
  }
  a.Growing(cache.free_namespaces_, cache.namespaces_.size());
  a(cache.num_entries_, cache.num_namespaces_, cache.openings_);
  if (!a.ok()) return;
  if (a.is_reading()) {
    ReadEntries(a, cache);
  } else {
    WriteEntries(a, cache);
  }
}

void SnapshotAccess::Visit(SnapshotArchive& a, PublicLane& lane) {
  const std::size_t num_blocks = lane.prefix_of_block_.size();
  const std::size_t num_tokens = num_blocks * static_cast<std::size_t>(lane.block_size_);
  constexpr std::size_t kMostTenants = 4096;
  a.List(lane.prefixes_, num_blocks, [&](SnapshotArchive& archive, PublicLane::Prefix& prefix) {
    archive.List(prefix.tokens, num_tokens);
    archive.List(prefix.blocks, num_blocks);
    archive.List(prefix.readers, kMostTenants);
  });
  a.Fixed(lane.prefix_of_block_);
}

void SnapshotAccess::Visit(SnapshotArchive& a, BlockTables& tables) {
  const auto most = static_cast<std::int32_t>(tables.max_blocks_);
  std::uint32_t slot = 0;
  a.Fixed(tables.rows_, [&](SnapshotArchive& archive, BlockTables::Row& row) {
    archive(row.size, row.num_sent, row.first_dirty);
    const std::int32_t used = std::max(row.size, row.num_sent);
    if (used < 0 || used > most) return archive.Fail();
    const std::size_t first = slot++ * tables.max_blocks_;
    for (std::int32_t i = 0; i < used; ++i) {
      const std::size_t place = first + static_cast<std::size_t>(i);
      archive(tables.entries_[place], tables.sent_[place]);
    }
  });
}

void SnapshotAccess::Visit(SnapshotArchive& a, JobLog& jobs) {
  std::uint64_t size = jobs.size_;
  a(size, jobs.num_in_flight_, jobs.newest_, jobs.fenced_);
  if (size > jobs.ring_.size()) a.Fail();
  if (!a.ok()) return;
  if (a.is_reading()) jobs.size_ = size;
  for (std::size_t i = 0; a.ok() && i < size; ++i) {
    JobRecord& record = jobs.at(i);
    a(record.job, record.phase);
    a.Growing(record.items, record.item_of_slot.size(),
              [](SnapshotArchive& archive, DraftItem& item) {
                archive(item.place, item.request, item.choice, item.slot, item.slot_generation,
                        item.stretch.first_position, item.stretch.num_tokens, item.samples,
                        item.is_decode, item.row_of);
              });
    a.Fixed(record.item_of_slot);
  }
}

std::vector<SnapshotAccess::Entry> SnapshotAccess::EntriesOf(PrefixCache& cache) {
  std::vector<Entry> entries;
  for (std::uint32_t block = 0; block < cache.entries_.size(); ++block) {
    if (!cache.has_entry(base::BlockId(block))) continue;
    PrefixCache::Entry& entry = cache.entries_[block];
    base::TokenId* tokens = cache.tokens_.data() + block * cache.block_size_;
    entries.push_back({.namespace_place = entry.namespace_index,
                       .key = &entry.key,
                       .parent = &entry.parent,
                       .tokens = {tokens, static_cast<std::size_t>(entry.num_tokens)}});
  }
  return entries;
}

std::vector<NamespaceKey*> SnapshotAccess::NamespacesOf(PrefixCache& cache) {
  std::vector<NamespaceKey*> keys;
  for (auto& index : cache.namespaces_) {
    keys.push_back(index.has_value() ? &index->key_ : nullptr);
  }
  return keys;
}

std::vector<std::span<base::TokenId>> SnapshotAccess::PrefixesOf(PublicLane& lane) {
  std::vector<std::span<base::TokenId>> prefixes;
  for (PublicLane::Prefix& prefix : lane.prefixes_) prefixes.emplace_back(prefix.tokens);
  return prefixes;
}

KeyDomain SnapshotAccess::DomainOf(const PrefixCache& cache, base::TenantId tenant) {
  return cache.tenants_[tenant.value()].domain;
}

}  // namespace pagoda::scheduler
