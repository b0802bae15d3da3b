#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/runtime/mutex.h"
#include "engine/output_sink.h"

namespace pagoda::fakes {

// Keeps what the engine delivered, per request, and checks the sink's contract: no tokens after the
// end, one end per request. Threads: any.
class RecordingSink final : public engine::OutputSink {
 public:
  struct Score {
    base::TokenLogprob of;
    std::uint32_t rank = 0;
    std::vector<base::TokenLogprob> alternatives;
  };
  struct Reply {
    std::vector<base::TokenId> tokens;
    std::vector<std::uint64_t> showable_bytes;  // of each delivery
    std::vector<Score> scores, prompt_scores;
    std::optional<scheduler::FinishReason> reason;
    std::uint64_t text_bytes = 0;
    std::int32_t matched_stop = -1;
    std::int64_t matched_stop_token = -1;
    scheduler::Receipt receipt;
    std::vector<base::TokenId> all_tokens;  // prompt and reply, as the request came back
  };

  void OnTokens(const engine::TokenDelivery& delivery) override PAGODA_EXCLUDES(mutex_);
  void OnPromptScores(const engine::PromptScoreDelivery& delivery) override PAGODA_EXCLUDES(mutex_);
  void OnFinished(scheduler::FinishEvent event) override PAGODA_EXCLUDES(mutex_);
  void OnEngineFailed(const absl::Status& why) override PAGODA_EXCLUDES(mutex_);

  Reply reply(base::RequestId id, std::uint32_t choice = 0) const PAGODA_EXCLUDES(mutex_);
  std::size_t num_finished() const PAGODA_EXCLUDES(mutex_);
  std::vector<base::RequestId> finish_order() const PAGODA_EXCLUDES(mutex_);
  absl::Status engine_failure() const PAGODA_EXCLUDES(mutex_);

  void WaitForFinished(std::size_t count) PAGODA_EXCLUDES(mutex_);
  void WaitForTokens(base::RequestId id, std::size_t count) PAGODA_EXCLUDES(mutex_);

 private:
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  using ReplyKey = std::pair<base::RequestId, std::uint32_t>;  // with the choice
  std::map<ReplyKey, Reply> replies_ PAGODA_GUARDED_BY(mutex_);
  std::vector<base::RequestId> finish_order_ PAGODA_GUARDED_BY(mutex_);
  absl::Status engine_failure_ PAGODA_GUARDED_BY(mutex_);
};

}  // namespace pagoda::fakes
