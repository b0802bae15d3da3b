#pragma once

#include <cstdint>

#include "base/strong_id.h"

namespace pagoda::base {

// A row of the vocabulary. A plain integer: tokens travel in long arrays and through arithmetic.
using TokenId = std::uint32_t;

// A configured customer of this server. 0 is the first configured one, `default` when none is.
using TenantId = StrongId<struct TenantTag, std::uint32_t>;
// One accepted request; made by the server, never reused, in order of arrival: a lower id is older.
using RequestId = StrongId<struct RequestTag, std::uint64_t>;
// The device row of a running sequence, 0 ... max_num_seqs - 1.
using SlotId = StrongId<struct SlotTag, std::uint32_t>;
// An index into the KV pool. Block 0 is the null block: reserved, never handed out.
using BlockId = StrongId<struct BlockTag, std::uint32_t>;
// A submitted step or transfer, in order of submission. 0 means none.
using JobId = StrongId<struct JobTag, std::uint64_t>;
// A loaded adapter; 0 is the base model.
using AdapterId = StrongId<struct AdapterTag, std::uint32_t>;
// An index into KvGeometry::groups.
using KvGroupId = StrongId<struct KvGroupTag, std::uint32_t>;

inline constexpr BlockId kNullBlock{0};
inline constexpr JobId kNoJob{0};
inline constexpr AdapterId kBaseModel{0};

}  // namespace pagoda::base
