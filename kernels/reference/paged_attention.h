#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::reference {

// Causal attention over paged KV, in chunks of 256 absolute positions and tiles inside them. Shapes
// were checked by the caller. Source of the idea: online softmax with a merge of partial states
// (FlashAttention, Flash-Decoding).
void PagedAttention(const AttentionParams& params);

}  // namespace pagoda::kernels::reference
