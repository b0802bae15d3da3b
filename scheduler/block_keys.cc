#include "scheduler/block_keys.h"

#include "base/check.h"
#include "base/keyed_hash.h"

namespace pagoda::scheduler {
namespace {

// Tags of the folded fields. A field added later takes a new tag, so that old keys never meet new
// ones.
constexpr std::uint8_t kEpochField = 1;
constexpr std::uint8_t kModelField = 2;
constexpr std::uint8_t kGroupField = 3;
constexpr std::uint8_t kTypeField = 4;
constexpr std::uint8_t kLayoutField = 5;
constexpr std::uint8_t kBlockSizeField = 6;
constexpr std::uint8_t kPositionField = 7;
constexpr std::uint8_t kNumericsField = 8;

// Tags of the fields of one block, and the constant text that the root is the hash of.
constexpr std::uint8_t kParentField = 16;
constexpr std::uint8_t kFullTokensField = 17;
constexpr std::uint8_t kPartialTokensField = 18;
constexpr std::uint8_t kRootField = 19;

}  // namespace

BlockKeyer::BlockKeyer(const NamespaceKey& cache_namespace, const KeyDomain& domain)
    : epoch_(domain.epoch), block_size_(domain.block_size) {
  PAGODA_CHECK(block_size_ > 0);
  base::KeyedHasher fold(cache_namespace.bytes());
  fold.AddField(kEpochField, domain.epoch);
  fold.AddField(kModelField, std::span<const std::uint8_t>(domain.model_digest));
  fold.AddField(kGroupField, std::uint64_t{domain.kv_group});
  fold.AddField(kTypeField, static_cast<std::uint64_t>(domain.kv_type));
  fold.AddField(kLayoutField, std::uint64_t{domain.layout_version});
  fold.AddField(kBlockSizeField, static_cast<std::uint64_t>(domain.block_size));
  fold.AddField(kPositionField, domain.position_scheme);
  fold.AddField(kNumericsField, domain.numerics_id);
  folded_key_ = fold.Finish();

  base::KeyedHasher root(folded_key_);
  root.AddField(kRootField, std::string_view("root"));
  root_.bytes = root.Finish();
}

BlockKey BlockKeyer::Key(const BlockKey& parent, std::span<const base::TokenId> tokens) const {
  const auto num_tokens = static_cast<std::int32_t>(tokens.size());
  PAGODA_CHECK(num_tokens >= 1);
  PAGODA_CHECK(num_tokens <= block_size_);
  base::KeyedHasher hasher(folded_key_);
  hasher.AddField(kParentField, std::span<const std::uint8_t>(parent.bytes));
  hasher.AddField(num_tokens == block_size_ ? kFullTokensField : kPartialTokensField, tokens);
  return BlockKey{hasher.Finish()};
}

std::vector<BlockKey> BlockKeyer::KeysOf(std::span<const base::TokenId> tokens) const {
  std::vector<BlockKey> keys;
  keys.reserve(tokens.size() / static_cast<std::size_t>(block_size_));
  ExtendKeys(tokens, keys);
  return keys;
}

void BlockKeyer::ExtendKeys(std::span<const base::TokenId> tokens,
                            std::vector<BlockKey>& keys) const {
  const auto block = static_cast<std::size_t>(block_size_);
  while ((keys.size() + 1) * block <= tokens.size()) {
    const BlockKey parent = keys.empty() ? root_ : keys.back();
    keys.push_back(Key(parent, tokens.subspan(keys.size() * block, block)));
  }
}

}  // namespace pagoda::scheduler
