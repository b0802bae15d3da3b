#include "client/load/load_tally.h"

namespace pagoda::client {
namespace {

void Add(const v1::Receipt& receipt, ReceiptSums& sums) {
  sums.prompt_tokens += receipt.prompt_tokens();
  sums.cached_tokens += receipt.cached_tokens();
  sums.generated_tokens += receipt.generated_tokens();
  sums.discarded_tokens += receipt.discarded_tokens();
  sums.preemptions += receipt.preemptions();
  sums.queue_steps += receipt.queue_steps();
  sums.prefill_steps += receipt.prefill_steps();
  sums.decode_steps += receipt.decode_steps();
  sums.block_steps += receipt.block_steps();
}

void Add(const ReceiptSums& other, ReceiptSums& sums) {
  sums.prompt_tokens += other.prompt_tokens;
  sums.cached_tokens += other.cached_tokens;
  sums.generated_tokens += other.generated_tokens;
  sums.discarded_tokens += other.discarded_tokens;
  sums.preemptions += other.preemptions;
  sums.queue_steps += other.queue_steps;
  sums.prefill_steps += other.prefill_steps;
  sums.decode_steps += other.decode_steps;
  sums.block_steps += other.block_steps;
}

}  // namespace

LoadTally::LoadTally(std::size_t limit)
    : first_token(limit),
      first_token_from_send(limit),
      inter_token(limit),
      whole_reply(limit),
      sent_late(limit),
      failed_after(limit) {}

void LoadTally::Take(base::Instant intended, const CallOutcome& outcome) {
  sent_late.Add(outcome.sent.NanosSince(intended));
  if (!outcome.failure.empty()) {
    ++num_failed;
    ++failures[outcome.failure];
    failed_after.Add(outcome.ended.NanosSince(intended));
    return;
  }
  ++num_finished;
  whole_reply.Add(outcome.ended.NanosSince(intended));
  Add(outcome.receipt, receipts);
  const TokenTimes& tokens = outcome.tokens;
  if (tokens.num_tokens() == 0) return;
  output_tokens += tokens.num_tokens();
  first_token.Add(tokens.first().NanosSince(intended));
  first_token_from_send.Add(tokens.first().NanosSince(outcome.sent));
  for (const std::int64_t gap : tokens.gaps_nanos()) inter_token.Add(gap);
}

void LoadTally::Merge(const LoadTally& other) {
  num_finished += other.num_finished;
  num_failed += other.num_failed;
  output_tokens += other.output_tokens;
  first_token.Merge(other.first_token);
  first_token_from_send.Merge(other.first_token_from_send);
  inter_token.Merge(other.inter_token);
  whole_reply.Merge(other.whole_reply);
  sent_late.Merge(other.sent_late);
  failed_after.Merge(other.failed_after);
  for (const auto& [code, count] : other.failures) failures[code] += count;
  Add(other.receipts, receipts);
}

}  // namespace pagoda::client
