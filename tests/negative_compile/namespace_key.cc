// Nothing but the minter makes a NamespaceKey.
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

#ifdef PAGODA_MUST_NOT_COMPILE
NamespaceKey Forge() { return NamespaceKey(std::array<std::uint8_t, 32>{1, 2, 3}); }
#else
NamespaceKey Copy(const NamespaceKey& key) { return key; }
#endif

}  // namespace pagoda::scheduler
