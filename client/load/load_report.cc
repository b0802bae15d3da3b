#include "client/load/load_report.h"

#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/figures.h"

namespace pagoda::client {
namespace {

using nlohmann::json;

std::string AsText(const LengthRange& range) {
  return range.least == range.most ? absl::StrCat(range.least)
                                   : absl::StrCat(range.least, "..", range.most);
}

double PerSecond(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

std::string Row(const char* label, const Samples& samples) {
  const Summary found = samples.Summarize();
  char line[160];
  if (found.count == 0) {
    std::snprintf(line, std::size(line), "  %-24s none measured\n", label);
    return line;
  }
  std::snprintf(line, std::size(line), "  %-24s %10.1f %10.1f %10.1f %10.1f %10.1f %10lld\n", label,
                found.mean, found.p50, found.p90, found.p99, found.max,
                static_cast<long long>(found.count));
  std::string row = line;
  if (found.not_kept > 0) {
    absl::StrAppend(&row, "    percentiles over the first ", Grouped(found.count - found.not_kept),
                    "\n");
  }
  return row;
}

json AsJson(const Samples& samples) {
  const Summary found = samples.Summarize();
  if (found.count == 0) return json();
  return {{"count", found.count}, {"not_kept", found.not_kept}, {"mean", found.mean},
          {"p50", found.p50},     {"p90", found.p90},           {"p99", found.p99},
          {"max", found.max}};
}

std::string FailuresAsText(const LoadTally& tally) {
  if (tally.num_failed == 0) return "none";
  return absl::StrJoin(tally.failures, ", ", [](std::string* out, const auto& failure) {
    absl::StrAppend(out, failure.first, " ", failure.second);
  });
}

std::string ReceiptsAsText(const ReceiptSums& sums) {
  const double share = sums.prompt_tokens > 0 ? 100.0 * static_cast<double>(sums.cached_tokens) /
                                                    static_cast<double>(sums.prompt_tokens)
                                              : 0.0;
  return absl::StrCat(Grouped(sums.prompt_tokens), " prompt tokens (", Grouped(sums.cached_tokens),
                      " cached, ", Fixed(share, 1), " %), ", Grouped(sums.generated_tokens),
                      " generated, ", sums.preemptions, " preemptions, ", Grouped(sums.block_steps),
                      " block-steps");
}

json AsJson(const ReceiptSums& sums) {
  return {{"prompt_tokens", sums.prompt_tokens},
          {"cached_tokens", sums.cached_tokens},
          {"generated_tokens", sums.generated_tokens},
          {"discarded_tokens", sums.discarded_tokens},
          {"preemptions", sums.preemptions},
          {"queue_steps", sums.queue_steps},
          {"prefill_steps", sums.prefill_steps},
          {"decode_steps", sums.decode_steps},
          {"block_steps", sums.block_steps}};
}

json AsJson(const LoadOptions& options) {
  json made = {{"loop", options.rate.has_value() ? "open" : "closed"},
               {"input_tokens", {options.input.least, options.input.most}},
               {"output_tokens", {options.output.least, options.output.most}},
               {"shared_prefix", options.shared_prefix},
               {"seed", options.seed}};
  if (options.rate.has_value()) {
    made["rate"] = *options.rate;
    made["max_in_flight"] = options.max_in_flight;
  } else {
    made["concurrency"] = options.concurrency;
  }
  if (options.num_requests.has_value()) made["requests"] = *options.num_requests;
  if (options.duration_seconds.has_value()) made["duration"] = *options.duration_seconds;
  return made;
}

}  // namespace

std::string LoadAsText(const LoadOptions& options) {
  std::string text =
      options.rate.has_value()
          ? absl::StrCat("open loop, ", *options.rate, " requests/s (Poisson), at most ",
                         options.max_in_flight, " in flight")
          : absl::StrCat("closed loop, ", options.concurrency, " at once");
  if (options.num_requests.has_value())
    absl::StrAppend(&text, ", ", *options.num_requests, " requests");
  if (options.duration_seconds.has_value())
    absl::StrAppend(&text, ", ", *options.duration_seconds, " s");
  absl::StrAppend(&text, "; input ", AsText(options.input), ", output ", AsText(options.output));
  if (options.shared_prefix > 0) absl::StrAppend(&text, ", shared prefix ", options.shared_prefix);
  absl::StrAppend(&text, "; seed ", options.seed);
  return text;
}

std::string ReportAsText(const LoadOptions& options, const LoadResult& result) {
  const LoadTally& tally = result.tally;
  std::string text = absl::StrCat(
      "Load      ", LoadAsText(options), "\nFinished  ", Grouped(tally.num_finished), " of ",
      Grouped(tally.num_finished + tally.num_failed), " in ", Fixed(result.seconds, 2), " s",
      result.stopped ? ", interrupted" : "", ": ",
      Fixed(PerSecond(tally.num_finished, result.seconds), 2), " requests/s, ",
      Fixed(PerSecond(tally.receipts.prompt_tokens, result.seconds), 1), " prompt and ",
      Fixed(PerSecond(tally.output_tokens, result.seconds), 1), " output tokens/s\n\n");
  char head[160];
  std::snprintf(head, std::size(head), "  %-24s %10s %10s %10s %10s %10s %10s\n", "milliseconds",
                "mean", "p50", "p90", "p99", "max", "count");
  text += head;
  text += Row("to the first token", tally.first_token);
  if (options.rate.has_value()) {
    text += Row("  from the sending", tally.first_token_from_send);
    text += Row("  sent late by", tally.sent_late);
  }
  text += Row("between tokens", tally.inter_token);
  text += Row("to the end", tally.whole_reply);
  if (tally.num_failed > 0) text += Row("to a failure", tally.failed_after);
  absl::StrAppend(&text, "\nReceipts  ", ReceiptsAsText(tally.receipts), "\nFailures  ",
                  FailuresAsText(tally), "\n");
  return text;
}

json ReportAsJson(const LoadOptions& options, const LoadResult& result) {
  const LoadTally& tally = result.tally;
  return {{"load", AsJson(options)},
          {"seconds", result.seconds},
          {"interrupted", result.stopped},
          {"finished", tally.num_finished},
          {"failed", tally.num_failed},
          {"failures", tally.failures},
          {"output_tokens", tally.output_tokens},
          {"requests_per_second", PerSecond(tally.num_finished, result.seconds)},
          {"output_tokens_per_second", PerSecond(tally.output_tokens, result.seconds)},
          {"prompt_tokens_per_second", PerSecond(tally.receipts.prompt_tokens, result.seconds)},
          {"milliseconds",
           {{"first_token", AsJson(tally.first_token)},
            {"first_token_from_send", AsJson(tally.first_token_from_send)},
            {"inter_token", AsJson(tally.inter_token)},
            {"whole_reply", AsJson(tally.whole_reply)},
            {"sent_late", AsJson(tally.sent_late)},
            {"failed_after", AsJson(tally.failed_after)}}},
          {"receipts", AsJson(tally.receipts)}};
}

bool HasFailed(const LoadOptions& options, const LoadResult& result) {
  const LoadTally& tally = result.tally;
  const auto all = static_cast<double>(tally.num_finished + tally.num_failed);
  return tally.num_finished == 0 ||
         100.0 * static_cast<double>(tally.num_failed) > options.allowed_failures_percent * all;
}

}  // namespace pagoda::client
