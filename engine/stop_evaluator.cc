#include "engine/stop_evaluator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

// Where the text may be shown to, byte by byte of what was generated:
//
//   | shown | shown, this token | held: could begin a stop string |
//   0                           text_bytes - held_bytes           text_bytes
//
// A match moves the end of the text back to its first byte, which never lies before what was shown:
// held bytes cover it.

namespace pagoda::engine {
namespace {

using scheduler::FinishReason;
using scheduler::StopProgress;

bool Contains(std::span<const base::TokenId> tokens, base::TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void EndAtStopString(const StopTerms& terms, const base::StopStep& step, std::uint64_t bytes_before,
                     StopVerdict& verdict) {
  PAGODA_CHECK(step.match_end <= step.token_bytes);
  const std::uint64_t match_end = bytes_before + step.match_end;
  PAGODA_CHECK(step.match_length <= match_end);
  verdict.outcome.finish = FinishReason::kStop;
  verdict.matched_stop = step.matched_stop;
  verdict.text_bytes = terms.include_stop_string ? match_end : match_end - step.match_length;
}

// Moves the automaton over `token`; ends the reply in `verdict` if a stop string that counts is
// complete.
void AdvanceStrings(const StopTerms& terms, base::TokenId token, bool counts,
                    StopProgress& progress, StopVerdict& verdict) {
  const base::StopStep step = terms.strings->Advance(progress.state, token);
  const std::uint64_t bytes_before = progress.text_bytes;
  progress.state = step.next_state;
  progress.text_bytes += step.token_bytes;
  PAGODA_CHECK(step.held_bytes <= progress.text_bytes);
  progress.held_bytes = step.held_bytes;
  if (counts && step.matched_stop >= 0) EndAtStopString(terms, step, bytes_before, verdict);
}

}  // namespace

StopTerms TermsOf(const scheduler::NewRequest& request) {
  return {.strings = request.stop_condition.get(),
          .stop_token_ids = request.stop_token_ids(),
          .min_tokens = request.sampling().min_tokens,
          .max_tokens = request.max_tokens(),
          .ignore_eos = request.sampling().ignore_eos,
          .include_stop_string = request.include_stop_string()};
}

StopEvaluator::StopEvaluator(std::vector<base::TokenId> eos_tokens)
    : eos_tokens_(std::move(eos_tokens)) {}

bool StopEvaluator::IsStopToken(const StopTerms& terms, base::TokenId token) const {
  return Contains(terms.stop_token_ids, token) ||
         (!terms.ignore_eos && Contains(eos_tokens_, token));
}

StopVerdict StopEvaluator::Evaluate(const StopTerms& terms, std::int32_t num_generated,
                                    std::span<const base::TokenId> tokens,
                                    StopProgress& progress) const {
  PAGODA_CHECK(num_generated < terms.max_tokens);
  StopVerdict verdict;
  for (const base::TokenId token : tokens) {
    ++verdict.outcome.num_accepted;
    ++num_generated;
    const bool counts = num_generated >= terms.min_tokens;
    if (counts && IsStopToken(terms, token)) {
      verdict.outcome.finish = FinishReason::kStop;
      verdict.matched_stop_token = token;
      break;
    }
    if (terms.strings != nullptr) AdvanceStrings(terms, token, counts, progress, verdict);
    if (terms.grammar != nullptr) {
      progress.grammar_state = terms.grammar->Advance(progress.grammar_state, token);
    }
    if (verdict.outcome.finish) break;
    if (terms.grammar != nullptr && terms.grammar->IsComplete(progress.grammar_state)) {
      verdict.outcome.finish = FinishReason::kStop;
      break;
    }
    if (num_generated == terms.max_tokens) {
      verdict.outcome.finish = FinishReason::kLength;
      break;
    }
  }
  if (terms.strings != nullptr) {
    // An end that is no stop string releases what was held for one.
    if (verdict.outcome.finish && verdict.matched_stop < 0)
      verdict.text_bytes = progress.text_bytes;
    verdict.showable_bytes =
        verdict.outcome.finish ? verdict.text_bytes : progress.text_bytes - progress.held_bytes;
  }
  return verdict;
}

}  // namespace pagoda::engine
