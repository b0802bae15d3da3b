#include "model/sampler.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "kernels/ops.h"

// Masks, bias and penalties change the logits here, in this order; temperature, min-p, top-k, top-p
// and the draw are one op of the backend. Whatever is kept per slot can be made again from the
// history, so a preempted request continues with the same tokens.
namespace pagoda::model {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr std::uint32_t kInPrompt = std::uint32_t{1} << 31;

struct SlotState {
  bool is_open = false;
  base::SamplingParams params;
  std::int32_t num_generated = 0;
  std::vector<base::LogitBias> logit_bias;
  std::vector<base::TokenId> masked_below_min_tokens;
  // Per token: how often it was generated; kInPrompt when the prompt holds it. Filled only for
  // requests with penalties, allocated by the first one of the slot.
  std::vector<std::uint32_t> counts;
};

bool IsBad(float logit) {
  return std::isnan(logit) || logit == std::numeric_limits<float>::infinity();
}

// Below min_tokens no end may be drawn. Returns false when a logit that it would hide is not
// finite: a mask must not cover up a broken row.
bool MaskEnds(const SlotState& slot, std::span<float> logits) {
  if (slot.num_generated >= slot.params.min_tokens) return true;
  for (const base::TokenId token : slot.masked_below_min_tokens) {
    if (IsBad(logits[token])) return false;
    logits[token] = kMasked;
  }
  return true;
}

void AddBias(const SlotState& slot, std::span<float> logits) {
  for (const base::LogitBias& entry : slot.logit_bias) logits[entry.token] += entry.bias;
}

// Repetition counts prompt and generated tokens, frequency and presence only generated ones.
void Penalise(const SlotState& slot, std::span<float> logits) {
  const base::SamplingParams& params = slot.params;
  if (!params.has_penalties()) return;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const std::uint32_t count = slot.counts[token];
    if (count == 0) continue;
    float& logit = logits[token];
    logit = logit > 0.0f ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    const std::uint32_t generated = count & ~kInPrompt;
    if (generated == 0) continue;
    logit -= params.frequency_penalty * static_cast<float>(generated);
    logit -= params.presence_penalty;
  }
}

}  // namespace

struct Sampler::State {
  kernels::Ops& ops;
  std::uint32_t vocabulary_size;
  std::vector<SlotState> slots;
  std::vector<kernels::SampleRow> rows;
  std::vector<kernels::SampleOutcome> outcomes;
  std::vector<bool> hidden_fault;  // per task: a mask would have covered a logit that is not finite

  SlotState& Slot(base::SlotId id) {
    PAGODA_CHECK(id.value() < slots.size());
    return slots[id.value()];
  }
  void Count(SlotState& slot, base::TokenId token) const {
    PAGODA_CHECK(token < vocabulary_size);
    ++slot.num_generated;
    if (slot.params.has_penalties()) ++slot.counts[token];
  }
};

Sampler::Sampler(kernels::Ops& ops, std::int32_t max_num_seqs, std::uint32_t vocabulary_size)
    : state_(std::make_unique<State>(
          State{.ops = ops,
                .vocabulary_size = vocabulary_size,
                .slots = std::vector<SlotState>(static_cast<std::size_t>(max_num_seqs)),
                .rows = {},
                .outcomes = {},
                .hidden_fault = {}})) {
  state_->rows.reserve(state_->slots.size());
  state_->outcomes.reserve(state_->slots.size());
  state_->hidden_fault.reserve(state_->slots.size());
}

Sampler::~Sampler() = default;

void Sampler::Open(base::SlotId id, const SamplerOpening& opening) {
  SlotState& slot = state_->Slot(id);
  const auto num_prompt_tokens = static_cast<std::size_t>(opening.num_prompt_tokens);
  PAGODA_CHECK(num_prompt_tokens <= opening.history.size());
  slot.is_open = true;
  slot.params = opening.params;
  slot.logit_bias.assign(opening.logit_bias.begin(), opening.logit_bias.end());
  slot.masked_below_min_tokens.assign(opening.masked_below_min_tokens.begin(),
                                      opening.masked_below_min_tokens.end());
  for (const base::LogitBias& entry : slot.logit_bias) {
    PAGODA_CHECK(entry.token < state_->vocabulary_size);
  }
  for (const base::TokenId token : slot.masked_below_min_tokens) {
    PAGODA_CHECK(token < state_->vocabulary_size);
  }
  slot.num_generated = 0;
  if (slot.params.has_penalties()) {
    slot.counts.assign(state_->vocabulary_size, 0);
    for (const base::TokenId token : opening.history.first(num_prompt_tokens)) {
      PAGODA_CHECK(token < state_->vocabulary_size);
      slot.counts[token] |= kInPrompt;
    }
  }
  for (const base::TokenId token : opening.history.subspan(num_prompt_tokens)) {
    state_->Count(slot, token);
  }
}

void Sampler::Close(base::SlotId id) { state_->Slot(id).is_open = false; }

SampledToken Sampler::Sample(base::SlotId slot, std::uint32_t choice, std::uint32_t position,
                             std::span<float> logits) {
  const SampleTask task{.slot = slot, .choice = choice, .position = position, .logits = logits};
  SampledToken token;
  SampleBatch(std::span(&task, 1), std::span(&token, 1));
  return token;
}

void Sampler::SampleBatch(std::span<const SampleTask> tasks, std::span<SampledToken> tokens) {
  PAGODA_CHECK(tasks.size() == tokens.size());
  PAGODA_CHECK(tasks.size() <= state_->slots.size());
  state_->rows.clear();
  state_->hidden_fault.clear();
  for (const SampleTask& task : tasks) {
    const SlotState& slot = state_->Slot(task.slot);
    PAGODA_CHECK(slot.is_open);
    PAGODA_CHECK(task.logits.size() >= state_->vocabulary_size);
    const std::span<float> logits = task.logits.first(state_->vocabulary_size);
    state_->hidden_fault.push_back(!MaskEnds(slot, logits));
    AddBias(slot, logits);
    Penalise(slot, logits);
    state_->rows.push_back({.logits = logits,
                            .temperature = slot.params.temperature,
                            .top_p = slot.params.top_p,
                            .top_k = slot.params.top_k,
                            .min_p = slot.params.min_p,
                            .seed = slot.params.seed,
                            .position = task.position,
                            .choice = task.choice});
  }
  state_->outcomes.assign(tasks.size(), {});
  const kernels::Stream stream;
  kernels::Device& device = state_->ops.device();
  state_->ops.Sample({.rows = state_->rows, .outcomes = state_->outcomes}, stream);
  const bool ran = device.Await(device.Record(stream)).ok();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const kernels::SampleOutcome& outcome = state_->outcomes[i];
    tokens[i] = {.token = outcome.token,
                 .finite = ran && outcome.finite && !state_->hidden_fault[i]};
    if (tokens[i].finite) state_->Count(state_->Slot(tasks[i].slot), outcome.token);
  }
}

}  // namespace pagoda::model
