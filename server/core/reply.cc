#include "server/core/reply.h"

namespace pagoda::server {

void ScoreList::Reserve(std::size_t num_scores, std::size_t alternatives_each) {
  scores.reserve(num_scores);
  alternatives.reserve(num_scores * alternatives_each);
}

void ScoreList::Append(std::span<const base::TokenScore> more,
                       std::span<const base::TokenLogprob> from) {
  for (base::TokenScore score : more) {
    const auto own = from.subspan(score.first_alternative, score.num_alternatives);
    score.first_alternative = static_cast<std::uint32_t>(alternatives.size());
    alternatives.insert(alternatives.end(), own.begin(), own.end());
    scores.push_back(score);
  }
}

void ScoreList::clear() {
  scores.clear();
  alternatives.clear();
}

void PromptPart::Clear() {
  text.clear();
  tokens.clear();
  scores.clear();
}

void PromptPart::Append(const PromptPart& more) {
  text += more.text;
  tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
  scores.Append(more.scores.scores, more.scores.alternatives);
}

void ChoicePart::Clear() {
  text.clear();
  tokens.clear();
  scores.clear();
}

void ChoicePart::Append(const ChoicePart& more) {
  text += more.text;
  tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
  scores.Append(more.scores.scores, more.scores.alternatives);
}

std::size_t ReplyPart::num_counted() const {
  std::size_t count = prompt.scores.size();
  for (const ChoicePart& choice : choices) count += choice.tokens.size();
  return count;
}

void ReplyPart::Clear() {
  prompt.Clear();
  for (ChoicePart& choice : choices) choice.Clear();
  end.reset();
}

void ReplyPart::Append(const ReplyPart& more) {
  prompt.Append(more.prompt);
  if (choices.size() < more.choices.size()) choices.resize(more.choices.size());
  for (std::size_t i = 0; i < more.choices.size(); ++i) choices[i].Append(more.choices[i]);
}

}  // namespace pagoda::server
