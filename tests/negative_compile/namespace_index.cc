// A NamespaceIndex comes from PrefixCache::Open alone, which takes a key.
#include "scheduler/prefix_cache.h"

namespace pagoda::scheduler {

#ifdef PAGODA_MUST_NOT_COMPILE
NamespaceIndex Forge(PrefixCache& cache, const NamespaceKey& key, const BlockKeyer& keyer) {
  return NamespaceIndex(cache, 0, base::TenantId{0}, key, keyer);
}
#else
NamespaceIndex& Open(PrefixCache& cache, const NamespaceKey& key) {
  return cache.Open(base::TenantId{0}, key);
}
#endif

}  // namespace pagoda::scheduler
