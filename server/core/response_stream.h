#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bounded_ring.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/runtime/mutex.h"
#include "engine/output_sink.h"
#include "server/core/admission_gate.h"
#include "server/core/call_input.h"
#include "server/core/reply.h"
#include "server/core/tenant_limits.h"
#include "text/text_stream.h"
#include "text/tokenizer.h"

namespace pagoda::server {

class ResponseStream;
// The engine side, a text worker and the door share a stream; it goes when the last of them lets
// go.
using ResponseStreamRef = std::shared_ptr<ResponseStream>;

// The door's half: told that a Take would give something. Called from a text worker, without locks,
// only after a Take that gave nothing, once for each; so never while a door writes, and never after
// the last part was taken.
class ReplyListener {
 public:
  virtual ~ReplyListener() = default;
  virtual void OnReplyReady() = 0;
};

// What a stream asks of the pipeline. Called without locks, from any thread.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  // Work for a text worker. At most one entry per stream is outstanding.
  virtual void PostText(ResponseStreamRef stream) = 0;
  virtual void CancelInEngine(base::RequestId id, scheduler::FinishReason why) = 0;
  virtual void PauseInEngine(base::RequestId id, bool paused) = 0;
  // The one terminal transition: nobody will need the request again.
  virtual void OnClosed(ResponseStream& stream) = 0;
};

// Sizes in tokens. Full means paused; what a step in flight still brings fits between `pause_at`
// and the ring's end.
struct StreamBounds {
  std::size_t ring_tokens = 1024;
  std::size_t pause_at = 512;
  std::size_t resume_at = 128;
};

// A request that has been taken in, before a text worker has prepared it.
struct Preparation {
  TenantLimits::Snapshot limits;  // those that the request keeps, until the engine has it
  scheduler::NewRequest request;
  PromptInput prompt;
  std::vector<std::string> stops;
  std::vector<std::string> bad_words;
  OutputOptions output;
  // Of a public prefix: who may read it, none means all.
  std::optional<std::vector<base::TenantId>> public_readers = {};
};

// One request between the engine and its door: tokens in, text and tokens out, with a bound on what
// lies between. Tokens and text advance apart: ids are shown at once, text once it can be neither
// part of a stop string nor of a character. Life: preparing -> in the engine -> ended (the end is
// known) -> closed (the door has it, or nobody will come for it). Threads: OnTokens and OnFinished
// on the engine's; Take and Cancel on the door's; RunText on a text worker, one at a time; Fail and
// CheckReader from any. Invariant: at most ring_tokens + one message of tokens are held, whatever
// the reader does.
class ResponseStream : public std::enable_shared_from_this<ResponseStream> {
 public:
  struct Identity {
    base::RequestId id{0};
    std::string wire_id;  // what the client sees
    base::TenantId tenant{0};
    std::string client_request_id;
    base::Instant arrival;
    std::uint32_t num_choices = 1;
  };
  ResponseStream(Identity identity, const StreamBounds& bounds, ReplyListener& listener,
                 StreamOwner& owner);

  const Identity& identity() const { return identity_; }

  // --- the pipeline
  // Hands over the permit and what is to be prepared; a text worker takes it from there. Once.
  void Open(AdmissionGate::Permit permit, std::unique_ptr<Preparation> preparation);
  std::unique_ptr<Preparation> TakePreparation();
  // Why the request should end although it is not in the engine yet.
  std::optional<scheduler::FinishReason> end_requested() const;
  void ShrinkPermit(std::int64_t tokens) { permit_.ShrinkTokens(tokens); }
  // How the text is written: `silent` tokens end the reply and add nothing. Before the request is
  // submitted.
  void SetTextRules(std::vector<base::TokenId> silent, text::ControlTokens control,
                    text::TextStream::FirstSpace first_space) {
    silent_tokens_ = std::move(silent);
    control_ = control;
    texts_.assign(texts_.size(), text::TextStream(first_space));
  }
  // Makes room for log-probabilities; before the request is submitted. A width is the number of
  // alternatives of each token; absent: none are asked for.
  void ReserveScores(std::optional<std::int32_t> width, std::optional<std::int32_t> prompt_width);
  // The prompt comes back before anything else. Before the request is submitted.
  void SetEcho(std::string text, std::vector<base::TokenId> tokens);
  // Right after the request went to the engine.
  void OnSubmitted();

  // --- the engine
  void OnTokens(const engine::TokenDelivery& delivery, base::Instant now);
  void OnPromptScores(const engine::PromptScoreDelivery& delivery, base::Instant now);
  void OnFinished(scheduler::FinishEvent event);
  // Ends the request for a reason outside the scheduler; ignored once it has an end.
  void Fail(absl::Status status);

  // --- a text worker
  // Marks the run; everything that arrives from now on asks for another.
  void BeginText();
  // Turns what has arrived into parts and, at the end, into the last one. Returns the end when this
  // call made it.
  std::optional<ReplyEnd> Pump(const text::Tokenizer& tokenizer, base::Instant now);
  // Returns whether the stream must be posted again.
  [[nodiscard]] bool EndText();

  // --- the door
  enum class Taken : std::uint8_t { kNothing, kPart, kLast };
  // Everything ready, merged. After kNothing the listener is told when there is more. kLast gives
  // the end; afterwards always.
  Taken Take(ReplyPart& part);
  // The caller is gone: the request ends, what it produced is dropped. Idempotent, in every state.
  void Cancel(scheduler::FinishReason why = scheduler::FinishReason::kCancelled);

  // --- the monitor
  // Ends a request whose reader has left the buffer full, and closes an ended one nobody has read,
  // for `grace_nanos`.
  void CheckReader(base::Instant now, std::int64_t grace_nanos);

  bool closed() const;
  std::size_t num_unread_tokens() const;

 private:
  enum class TextState : std::uint8_t { kIdle, kQueued, kRunning, kRunAgain };
  struct Arrived;  // what a pump works on

  bool MarkForText() PAGODA_REQUIRES(mutex_);
  void TakeTokens(const engine::TokenDelivery& delivery) PAGODA_REQUIRES(mutex_);
  bool TryClose() PAGODA_REQUIRES(mutex_);
  // Counts what has arrived. Returns whether the request must pause.
  bool CountArrived(std::size_t count, base::Instant now) PAGODA_REQUIRES(mutex_);
  void RequestEnd(scheduler::FinishReason why, bool discard);
  void TellPause(bool paused);
  void Close();
  void TakeArrived(Arrived& arrived);
  void AppendText(const Arrived& arrived, const text::Tokenizer& tokenizer, ReplyPart& part);
  ReplyEnd MakeEnd(const Arrived& arrived, base::Instant now) const;

  const Identity identity_;
  const StreamBounds bounds_;
  ReplyListener& listener_;
  StreamOwner& owner_;

  // A token on its way, and the choice it belongs to.
  struct ChoiceToken {
    std::uint32_t choice = 0;
    base::TokenId token = 0;
  };

  // The text worker that runs the stream.
  std::vector<text::TextStream> texts_;  // by choice
  std::vector<base::TokenId> silent_tokens_;
  text::ControlTokens control_ = text::ControlTokens::kSkipped;
  std::vector<ChoiceToken> scratch_;
  ScoreList scratch_scores_, scratch_prompt_scores_;
  PromptPart echo_;

  // Shrunk by the text worker before the submission, by the engine at the first token, released at
  // the close: these follow one another through `mutex_`, and none happens under it.
  AdmissionGate::Permit permit_;

  mutable base::Mutex mutex_;
  std::unique_ptr<Preparation> preparation_ PAGODA_GUARDED_BY(mutex_);
  base::BoundedRing<ChoiceToken> ring_ PAGODA_GUARDED_BY(mutex_);
  ScoreList arrived_scores_ PAGODA_GUARDED_BY(mutex_);  // of the ring's tokens, or empty
  ScoreList arrived_prompt_scores_ PAGODA_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> showable_bytes_ PAGODA_GUARDED_BY(mutex_);  // by choice
  std::optional<scheduler::FinishEvent> finished_ PAGODA_GUARDED_BY(mutex_);
  std::optional<absl::Status> failure_ PAGODA_GUARDED_BY(mutex_);
  std::optional<ReplyPart> ready_ PAGODA_GUARDED_BY(mutex_);  // absent while a worker adds to it
  std::optional<ReplyEnd> end_ PAGODA_GUARDED_BY(mutex_);
  std::optional<scheduler::FinishReason> end_requested_ PAGODA_GUARDED_BY(mutex_);
  std::size_t num_unread_tokens_ PAGODA_GUARDED_BY(mutex_) = 0;
  std::optional<base::Instant> first_token_at_ PAGODA_GUARDED_BY(mutex_);
  std::optional<base::Instant> full_since_ PAGODA_GUARDED_BY(mutex_);
  std::optional<base::Instant> ended_at_ PAGODA_GUARDED_BY(mutex_);
  TextState text_state_ PAGODA_GUARDED_BY(mutex_) = TextState::kIdle;
  bool submitted_ PAGODA_GUARDED_BY(mutex_) = false;
  bool engine_done_ PAGODA_GUARDED_BY(mutex_) = false;  // it has sent, or will send, nothing more
  bool discard_ PAGODA_GUARDED_BY(mutex_) = false;      // nobody reads any more
  bool reader_waits_ PAGODA_GUARDED_BY(mutex_) = false;
  bool closed_ PAGODA_GUARDED_BY(mutex_) = false;
  bool want_pause_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::server
