#include "tests/fakes/digest_executor.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace pagoda::fakes {

using scheduler::StepPlan;
using scheduler::StepResult;
using scheduler::WorkItem;

namespace {

// A 64-bit mixer (the finaliser of SplitMix64).
std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t DigestOf(const base::SamplingParams& sampling) {
  std::uint64_t digest = Mix(sampling.seed, std::bit_cast<std::uint32_t>(sampling.temperature));
  digest = Mix(digest, std::bit_cast<std::uint32_t>(sampling.top_p));
  return Mix(digest, static_cast<std::uint64_t>(sampling.top_k));
}

constexpr std::uint64_t kGarbage = 0xBADBADBADBADBADBu;

}  // namespace

DigestExecutor::DigestExecutor(const DigestOptions& options)
    : options_(options),
      rows_(static_cast<std::size_t>(options.max_num_seqs)),
      results_(static_cast<std::size_t>(options.max_in_flight) + 1) {
  PAGODA_CHECK(options.vocabulary_size > 0);
  for (const std::int32_t num_blocks : options.pool_blocks_per_group) {
    std::vector<std::uint64_t>& cells = pool_.emplace_back();
    cells.resize(static_cast<std::size_t>(num_blocks) *
                 static_cast<std::size_t>(options.block_size));
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = Mix(kGarbage, i) | 1;
  }
  for (Row& row : rows_) row.tables.resize(pool_.size());
}

absl::Status DigestExecutor::Submit(const StepPlan& plan) {
  PAGODA_CHECK(num_submitted_ - num_awaited_ < options_.max_in_flight);
  StepResult& result = results_[static_cast<std::size_t>(num_submitted_++) % results_.size()];
  if (options_.timing == DigestOptions::Timing::kAtSubmit) {
    Execute(plan, result);
  } else {
    waiting_.push_back(&plan);
  }
  return absl::OkStatus();
}

absl::StatusOr<const StepResult*> DigestExecutor::Await() {
  PAGODA_CHECK(num_awaited_ < num_submitted_);
  StepResult& result = results_[static_cast<std::size_t>(num_awaited_++) % results_.size()];
  if (options_.timing == DigestOptions::Timing::kAtAwait) {
    Execute(*waiting_.front(), result);
    waiting_.erase(waiting_.begin());
  }
  return &result;
}

void DigestExecutor::Execute(const StepPlan& plan, StepResult& result) {
  for (const base::SlotId slot : plan.closed) rows_[slot.value()].open = false;
  for (const scheduler::SlotOpening& opening : plan.opened) Open(plan, opening);
  ApplyMemoryEffects(plan);
  digests_.resize(plan.work.size());
  for (const WorkItem& item : plan.work) AppendBlocks(plan, item);
  for (std::size_t w = 0; w < plan.work.size(); ++w) {
    digests_[w].resize(plan.work[w].tokens.count);
    Compute(plan, plan.work[w], digests_[w]);
  }
  result.job = plan.job;
  result.samples.clear();
  result.tokens.clear();
  result.prompt_scores.clear();
  result.scores.clear();
  for (const scheduler::ScoreRequest& request : plan.scores) Score(plan, request, result);
  for (const scheduler::SampleRequest& request : plan.samples) {
    const scheduler::LogitRow& logits = plan.rows[request.row];
    CheckMayDraw(request, plan.work[logits.work].slot);
    PAGODA_CHECK(plan.work[logits.work].first_position + logits.offset + 1 == request.position);
    result.samples.push_back({.slot = request.slot,
                              .slot_generation = request.slot_generation,
                              .choice = request.choice,
                              .position = request.position,
                              .tokens = {static_cast<std::uint32_t>(result.tokens.size()), 1},
                              .scores = {}});
    result.tokens.push_back(Draw(request, digests_[logits.work][logits.offset]));
  }
}

// A row serves another slot than its own only where both know the same tokens.
void DigestExecutor::CheckMayDraw(const scheduler::SampleRequest& request,
                                  base::SlotId owner) const {
  if (owner == request.slot) return;
  const std::vector<base::TokenId>& own = rows_[owner.value()].history;
  const std::vector<base::TokenId>& other = rows_[request.slot.value()].history;
  PAGODA_CHECK(own.size() >= request.position && other.size() >= request.position);
  PAGODA_CHECK(std::equal(own.begin(), own.begin() + request.position, other.begin()));
}

void DigestExecutor::ApplyMemoryEffects(const StepPlan& plan) {
  const auto size = static_cast<std::size_t>(options_.block_size);
  for (const scheduler::MemoryEffect& effect : plan.memory_effects) {
    if (effect.kind == scheduler::MemoryEffect::Kind::kZero) {
      const scheduler::BlockZero& zero = plan.zeros[effect.index];
      PAGODA_CHECK(zero.block != base::kNullBlock);
      std::fill_n(pool_[zero.group.value()].begin() +
                      static_cast<std::ptrdiff_t>(zero.block.value() * size),
                  size, 0);
    } else {
      const scheduler::BlockCopy& copy = plan.copies[effect.index];
      PAGODA_CHECK(copy.target != base::kNullBlock && copy.source != base::kNullBlock);
      std::vector<std::uint64_t>& cells = pool_[copy.group.value()];
      for (std::size_t s = 0; s < copy.num_slots; ++s) {
        cells[copy.target.value() * size + s] = cells[copy.source.value() * size + s];
      }
    }
  }
}

void DigestExecutor::Open(const StepPlan& plan, const scheduler::SlotOpening& opening) {
  const auto history = std::span(plan.tokens).subspan(opening.history.begin, opening.history.count);
  Row& row = rows_[opening.slot.value()];
  PAGODA_CHECK_MSG(!row.open, "a row is opened that was not closed");
  row.open = true;
  row.sampling = opening.sampling;
  row.history.assign(history.begin(), history.end());
  for (std::vector<std::uint32_t>& table : row.tables) table.clear();
}

void DigestExecutor::AppendBlocks(const StepPlan& plan, const WorkItem& item) {
  Row& row = rows_[item.slot.value()];
  PAGODA_CHECK(row.open);
  const auto appends =
      std::span(plan.block_appends).subspan(item.appended_blocks.begin, item.appended_blocks.count);
  for (const scheduler::BlockAppend& append : appends) {
    PAGODA_CHECK(append.block != base::kNullBlock);
    std::vector<std::uint32_t>& table = row.tables[append.group.value()];
    if (append.replace_index < 0) {
      table.push_back(append.block.value());
    } else {
      table.at(static_cast<std::size_t>(append.replace_index)) = append.block.value();
    }
  }
}

std::uint64_t& DigestExecutor::Cell(std::size_t group, const Row& row, std::uint32_t position) {
  const auto size = static_cast<std::uint32_t>(options_.block_size);
  PAGODA_CHECK(position / size < row.tables[group].size());
  return pool_[group][std::size_t{row.tables[group][position / size]} * size + position % size];
}

void DigestExecutor::Compute(const StepPlan& plan, const WorkItem& item,
                             std::span<std::uint64_t> digests) {
  Row& row = rows_[item.slot.value()];
  const std::uint32_t context = item.first_position + item.tokens.count;
  PAGODA_CHECK(context <= static_cast<std::uint32_t>(options_.max_model_len));
  std::fill(digests.begin(), digests.end(), 0);
  for (std::size_t group = 0; group < pool_.size(); ++group) {
    std::uint64_t before = group;
    for (std::uint32_t p = 0; p < item.first_position; ++p)
      before = Mix(before, Cell(group, row, p));
    for (std::uint32_t i = 0; i < item.tokens.count; ++i) {
      const std::uint32_t position = item.first_position + i;
      const scheduler::PlanToken token = plan.TokensOf(item)[i];
      if (!token.last_of_slot && position == row.history.size()) row.history.push_back(token.value);
      const base::TokenId value = token.last_of_slot ? row.history.at(position) : token.value;
      if (i >= item.num_without_kv) {
        Cell(group, row, position) = Mix(Mix(before, value), position) | 1;
      }
      before = Mix(before, Cell(group, row, position));
      digests[i] = Mix(digests[i], Mix(before, value));
    }
  }
  num_computed_tokens_ += item.tokens.count;
  const std::uint64_t dirt = DirtBehind(row, context);
  if (dirt != 0) {
    for (std::uint64_t& digest : digests) digest = Mix(digest, dirt);
  }
}

// 0 when all slots of the row's blocks behind the context are zero.
std::uint64_t DigestExecutor::DirtBehind(const Row& row, std::uint32_t context) {
  std::uint64_t dirt = 0;
  for (std::size_t group = 0; group < pool_.size(); ++group) {
    const auto end = static_cast<std::uint32_t>(row.tables[group].size()) *
                     static_cast<std::uint32_t>(options_.block_size);
    for (std::uint32_t p = context; p < end; ++p) {
      const std::uint64_t cell = Cell(group, row, p);
      if (cell == 0) continue;
      ++num_dirty_slots_;
      dirt = Mix(dirt, cell);
    }
  }
  return dirt;
}

// A score is a digest of exactly the context that its row was computed over.
void DigestExecutor::Score(const StepPlan& plan, const scheduler::ScoreRequest& request,
                           StepResult& result) const {
  result.prompt_scores.push_back(
      {.slot = request.slot,
       .slot_generation = request.slot_generation,
       .first_position = request.first_position,
       .scores = {static_cast<std::uint32_t>(result.scores.size()), request.tokens.count}});
  for (std::uint32_t i = 0; i < request.tokens.count; ++i) {
    const scheduler::LogitRow& row = plan.rows[request.first_row + i];
    PAGODA_CHECK(plan.work[row.work].slot == request.slot);
    PAGODA_CHECK(plan.work[row.work].first_position + row.offset + 1 == request.first_position + i);
    const base::TokenId token = plan.tokens[request.tokens.begin + i];
    const std::uint64_t digest = Mix(digests_[row.work][row.offset], token);
    result.scores.push_back({.of = {.token = token, .logprob = -static_cast<float>(digest >> 40)},
                             .rank = static_cast<std::uint32_t>(1 + digest % 100)});
  }
}

base::TokenId DigestExecutor::Draw(const scheduler::SampleRequest& request,
                                   std::uint64_t context_digest) {
  Row& row = rows_[request.slot.value()];
  PAGODA_CHECK(row.open && row.history.size() >= request.position);
  std::uint64_t digest = Mix(context_digest, DigestOf(row.sampling));
  for (std::uint32_t p = 0; p < request.position; ++p) digest = Mix(digest, row.history[p]);
  digest = Mix(Mix(digest, request.position), request.choice);
  const auto token = static_cast<base::TokenId>(digest % options_.vocabulary_size);
  if (row.history.size() == request.position) row.history.push_back(token);
  return token;
}

void DigestExecutor::SpoilBlock(base::KvGroupId group, base::BlockId block) {
  const auto size = static_cast<std::size_t>(options_.block_size);
  std::uint64_t* cells = &pool_[group.value()][block.value() * size];
  for (std::size_t s = 0; s < size; ++s) cells[s] = Mix(kGarbage, s) | 1;
}

void DigestExecutor::Spoil(const StepPlan& plan) {
  for (const scheduler::BlockZero& zero : plan.zeros) SpoilBlock(zero.group, zero.block);
  for (const scheduler::BlockCopy& copy : plan.copies) SpoilBlock(copy.group, copy.target);
  for (const WorkItem& item : plan.work) {
    Row& row = rows_[item.slot.value()];
    if (!row.open) continue;  // a later step, spoiled before, had it
    for (std::size_t group = 0; group < pool_.size(); ++group) {
      for (std::uint32_t i = item.num_without_kv; i < item.tokens.count; ++i) {
        Cell(group, row, item.first_position + i) = Mix(kGarbage, i) | 1;
      }
    }
    row.open = false;
  }
  for (const scheduler::SampleRequest& request : plan.samples) {
    rows_[request.slot.value()].open = false;
  }
  // Also of choices that wait for their prompt and have no work in it.
  for (const scheduler::SlotOpening& opening : plan.opened) {
    rows_[opening.slot.value()].open = false;
  }
}

}  // namespace pagoda::fakes
