// A hold on a block is not copied.
#include "scheduler/block_ref.h"

namespace pagoda::scheduler {

#ifdef PAGODA_MUST_NOT_COMPILE
BlockRef Take(const BlockRef& ref) { return ref; }
#else
BlockRef Take(BlockRef&& ref) { return std::move(ref); }
#endif

}  // namespace pagoda::scheduler
