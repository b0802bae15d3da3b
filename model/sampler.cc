#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "kernels/ops.h"

// Masks, bias and penalties change the logits here (logit_rules); temperature, min-p, top-k, top-p
// and the draw are one op of the backend, log-probabilities another. They work on a copy, so the
// row stays as the model gave it.
namespace pagoda::model {
namespace {

// EOS ids of a model beside the stop ids of a request.
constexpr std::size_t kMaxEosTokens = 64;

bool NothingLeft(std::span<const float> logits) {
  return std::ranges::all_of(logits,
                             [](float x) { return x == -std::numeric_limits<float>::infinity(); });
}

}  // namespace

struct Sampler::State {
  kernels::Ops& ops;
  std::uint32_t vocabulary_size;
  std::vector<LogitRules> slots;
  std::vector<kernels::SampleRow> rows;
  std::vector<kernels::SampleOutcome> outcomes;
  std::vector<LogitRules::Effect> effects;  // per task
  std::vector<std::vector<float>> changed;  // per task: a copy of the row, or unused
  std::vector<kernels::ScoreRow> score_rows;
  std::vector<kernels::ScoreOutcome> score_outcomes;
  std::vector<SampledToken*> scored;  // whom score_rows are about

  LogitRules& Slot(base::SlotId id) {
    PAGODA_CHECK(id.value() < slots.size());
    return slots[id.value()];
  }
  // The row as the rules want it.
  std::span<const float> Prepare(const LogitRules& rules, std::span<const float> logits);
  void AddScoreRow(std::span<const float> logits, std::span<const base::TokenId> token_ids,
                   std::int32_t num_alternatives, SampledToken& about);
  void RunScores(Alternatives& alternatives);
  bool Await() {
    kernels::Device& device = ops.device();
    return device.Await(device.Record(kernels::Stream{})).ok();
  }
};

std::span<const float> Sampler::State::Prepare(const LogitRules& rules,
                                               std::span<const float> logits) {
  effects.push_back({});
  if (!rules.changes_logits()) return logits;
  std::vector<float>& copy = changed[effects.size() - 1];
  copy.assign(logits.begin(), logits.end());
  effects.back() = rules.Apply(copy);
  return copy;
}

// The alternatives get their place when all rows are known.
void Sampler::State::AddScoreRow(std::span<const float> logits,
                                 std::span<const base::TokenId> token_ids,
                                 std::int32_t num_alternatives, SampledToken& about) {
  const auto most = token_ids.empty() ? vocabulary_size : base::kMaxLogprobTokenIds;
  about.score.of.token = about.token;
  about.score.num_alternatives = std::min(static_cast<std::uint32_t>(num_alternatives), most);
  score_rows.push_back(
      {.logits = logits, .token = about.token, .token_ids = token_ids, .alternatives = {}});
  scored.push_back(&about);
}

void Sampler::State::RunScores(Alternatives& alternatives) {
  if (score_rows.empty()) return;
  std::size_t end = alternatives.size();
  for (SampledToken* about : scored) {
    about->score.first_alternative = static_cast<std::uint32_t>(end);
    end += about->score.num_alternatives;
  }
  alternatives.resize(end);
  for (std::size_t i = 0; i < scored.size(); ++i) {
    const base::TokenScore& score = scored[i]->score;
    score_rows[i].alternatives =
        std::span(alternatives).subspan(score.first_alternative, score.num_alternatives);
  }
  score_outcomes.assign(score_rows.size(), {});
  ops.Score({.rows = score_rows, .outcomes = score_outcomes}, kernels::Stream{});
  const bool ran = Await();
  for (std::size_t i = 0; i < scored.size(); ++i) {
    scored[i]->finite = scored[i]->finite && ran && score_outcomes[i].finite;
    scored[i]->score.of.logprob = score_outcomes[i].logprob;
    scored[i]->score.rank = score_outcomes[i].rank;
  }
  score_rows.clear();
  scored.clear();
}

Sampler::Sampler(kernels::Ops& ops, std::int32_t max_num_seqs, std::uint32_t vocabulary_size)
    : state_(std::make_unique<State>(State{.ops = ops,
                                           .vocabulary_size = vocabulary_size,
                                           .slots = {},
                                           .rows = {},
                                           .outcomes = {},
                                           .effects = {},
                                           .changed = {},
                                           .score_rows = {},
                                           .score_outcomes = {},
                                           .scored = {}})) {
  const auto num_slots = static_cast<std::size_t>(max_num_seqs);
  state_->slots.reserve(num_slots);
  for (std::size_t i = 0; i < num_slots; ++i) {
    state_->slots.emplace_back(vocabulary_size, base::kMaxStopTokenIds + kMaxEosTokens);
  }
  state_->rows.reserve(num_slots);
  state_->outcomes.reserve(num_slots);
  state_->effects.reserve(num_slots);
  // Reserved, not filled: only as many pages are ever touched as rows were copied.
  state_->changed.resize(num_slots);
  for (std::vector<float>& row : state_->changed) row.reserve(vocabulary_size);
  state_->score_rows.reserve(num_slots);
  state_->score_outcomes.reserve(num_slots);
  state_->scored.reserve(num_slots);
}

Sampler::~Sampler() = default;

void Sampler::Open(base::SlotId id, const SamplerOpening& opening) {
  state_->Slot(id).Open(opening);
}

void Sampler::Close(base::SlotId id) { state_->Slot(id).Close(); }

SampledToken Sampler::Sample(base::SlotId slot, std::uint32_t choice, std::uint32_t position,
                             std::span<const float> logits) {
  const SampleTask task{.slot = slot, .choice = choice, .position = position, .logits = logits};
  SampledToken token;
  Alternatives alternatives;
  SampleBatch(std::span(&task, 1), std::span(&token, 1), alternatives);
  return token;
}

void Sampler::SampleBatch(std::span<const SampleTask> tasks, std::span<SampledToken> tokens,
                          Alternatives& alternatives) {
  State& state = *state_;
  PAGODA_CHECK(tasks.size() == tokens.size());
  PAGODA_CHECK(tasks.size() <= state.slots.size());
  state.rows.clear();
  state.effects.clear();
  for (const SampleTask& task : tasks) {
    const LogitRules& rules = state.Slot(task.slot);
    PAGODA_CHECK(rules.is_open());
    PAGODA_CHECK(task.logits.size() >= state.vocabulary_size);
    const std::span<const float> logits = task.logits.first(state.vocabulary_size);
    state.rows.push_back({.logits = state.Prepare(rules, logits),
                          .temperature = rules.params().temperature,
                          .top_p = rules.params().top_p,
                          .top_k = rules.params().top_k,
                          .min_p = rules.params().min_p,
                          .seed = rules.params().seed,
                          .position = task.position,
                          .choice = task.choice});
  }
  state.outcomes.assign(tasks.size(), {});
  state.ops.Sample({.rows = state.rows, .outcomes = state.outcomes}, kernels::Stream{});
  const bool ran = state.Await();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const kernels::SampleOutcome& outcome = state.outcomes[i];
    const LogitRules::Effect& effect = state.effects[i];
    LogitRules& rules = state.Slot(tasks[i].slot);
    const bool whole = ran && !effect.hides_fault;
    const bool nothing =
        whole && !outcome.finite && effect.hides_token && NothingLeft(state.rows[i].logits);
    tokens[i] = {.token = outcome.token,
                 .finite = whole && (outcome.finite || nothing),
                 .nothing_allowed = nothing,
                 .score = {}};
    if (!tokens[i].finite || nothing) continue;
    rules.Count(outcome.token);
    if (const auto count = rules.params().logprobs) {
      state.AddScoreRow(tasks[i].logits.first(state.vocabulary_size), rules.logprob_token_ids(),
                        *count, tokens[i]);
    }
  }
  state.RunScores(alternatives);
}

void Sampler::ScoreBatch(std::span<const ScoreTask> tasks, std::span<SampledToken> tokens,
                         Alternatives& alternatives) {
  State& state = *state_;
  PAGODA_CHECK(tasks.size() == tokens.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const LogitRules& rules = state.Slot(tasks[i].slot);
    PAGODA_CHECK(rules.is_open() && rules.params().prompt_logprobs.has_value());
    tokens[i] = {.token = tasks[i].token};
    state.AddScoreRow(tasks[i].logits.first(state.vocabulary_size), {},
                      *rules.params().prompt_logprobs, tokens[i]);
    if (state.score_rows.size() == state.score_rows.capacity()) state.RunScores(alternatives);
  }
  state.RunScores(alternatives);
}

}  // namespace pagoda::model
