#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/scheduler_state.h"
#include "scheduler/snapshot_archive.h"

namespace pagoda::scheduler {

// What sees into the parts of the state, to write them down and to make them again. Between two
// plans, with no finished request left to take. What is missing here is missing in every replay:
// tests/simulation plays lives on from snapshots and compares every decision.
struct SnapshotAccess {
  // snapshot.cc
  static void Visit(SnapshotArchive& a, SchedulerConfig& config);
  static void Visit(SnapshotArchive& a, SchedulerState& state);
  static void Visit(SnapshotArchive& a, SchedulerState& state, LiveRequest& live);
  static void Visit(SnapshotArchive& a, NewRequest& request, std::int32_t block_size);
  static NewRequest EmptyRequest() { return NewRequest(); }  // to be read
  static void Visit(SnapshotArchive& a, RequestSlab& requests, SchedulerState& state);
  static void Visit(SnapshotArchive& a, TenantQueue& queue);
  static void FindRecords(SnapshotArchive& a, SchedulerState& state);
  // snapshot_parts.cc
  static void Visit(SnapshotArchive& a, BlockPool& pool);
  static void Visit(SnapshotArchive& a, PrefixCache& cache);
  static void Visit(SnapshotArchive& a, PublicLane& lane);
  static void Visit(SnapshotArchive& a, BlockTables& tables);
  static void Visit(SnapshotArchive& a, JobLog& jobs);

  // What a life is about, to be put aside (engine/journal_disguise.h).
  struct Entry {
    std::uint32_t namespace_place = 0;
    BlockKey* key = nullptr;
    BlockKey* parent = nullptr;
    std::span<base::TokenId> tokens;
  };
  static std::vector<Entry> EntriesOf(PrefixCache& cache);
  // By place; null where none is open.
  static std::vector<NamespaceKey*> NamespacesOf(PrefixCache& cache);
  static std::vector<std::span<base::TokenId>> PrefixesOf(PublicLane& lane);
  static base::TenantId TenantOf(const PrefixCache& cache, std::uint32_t place) {
    return cache.namespaces_[place]->tenant_;
  }
  static KeyDomain DomainOf(const PrefixCache& cache, base::TenantId tenant);
  static NamespaceKey KeyOf(const std::array<std::uint8_t, NamespaceKey::kNumBytes>& bytes) {
    return NamespaceKey(bytes);
  }

 private:
  static void VisitNamespace(SnapshotArchive& a, PrefixCache& cache, std::uint32_t place);
  static void WriteEntries(SnapshotArchive& a, PrefixCache& cache);
  static void ReadEntries(SnapshotArchive& a, PrefixCache& cache);
};

// The state as bytes, all of it, prompts and keys too; returns how many, or 0 when `out` is too
// small. Allocates nothing.
std::size_t WriteSnapshot(SchedulerState& state, std::span<std::uint8_t> out);

// DataLoss for bytes that are no snapshot of this build.
absl::StatusOr<std::unique_ptr<SchedulerState>> ReadSnapshot(std::span<const std::uint8_t> bytes);

}  // namespace pagoda::scheduler
