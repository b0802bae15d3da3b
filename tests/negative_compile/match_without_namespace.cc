// The cache itself finds nothing: reads are members of a namespace's index.
#include "scheduler/prefix_cache.h"

namespace pagoda::scheduler {

std::optional<base::BlockId> Read(const PrefixCache& cache, const NamespaceIndex& index,
                                  const BlockKey& key, std::span<const base::TokenId> tokens) {
#ifdef PAGODA_MUST_NOT_COMPILE
  static_cast<void>(index);
  return cache.Find(key, key, tokens);
#else
  static_cast<void>(cache);
  return index.Find(key, key, tokens);
#endif
}

}  // namespace pagoda::scheduler
