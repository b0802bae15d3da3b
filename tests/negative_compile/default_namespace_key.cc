// There is no NamespaceKey without a namespace.
#include "scheduler/namespace.h"

namespace pagoda::scheduler {

#ifdef PAGODA_MUST_NOT_COMPILE
NamespaceKey Nobody() { return {}; }
#else
std::size_t NumBytes(const NamespaceKey& key) { return key.bytes().size(); }
#endif

}  // namespace pagoda::scheduler
