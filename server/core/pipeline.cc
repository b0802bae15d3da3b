#include "server/core/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/runtime/log.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/core/joined_reply.h"
#include "server/core/prompt_encoding.h"
#include "server/core/refusal.h"
#include "server/core/request_log.h"
#include "text/stop_automaton.h"

namespace pagoda::server {
namespace {

using scheduler::FinishReason;
using scheduler::NewRequest;

std::size_t LongestTokenBytes(const text::Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (base::TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    longest = std::max(longest, tokenizer.Bytes(id).size());
  }
  return longest;
}

std::int64_t SumOfPermits(const std::vector<TenantBounds>& tenants) {
  std::int64_t sum = 0;
  for (const TenantBounds& bounds : tenants) sum += bounds.max_requests;
  return sum;
}

// Every request with a permit, every text call, and the warm-up.
std::size_t NumPosters(const PipelineOptions& options) {
  const std::int64_t requests = std::max(options.max_requests, SumOfPermits(options.tenants));
  const auto tenants = static_cast<std::int64_t>(options.tenants.size());
  return static_cast<std::size_t>(requests + options.max_text_calls + tenants + 1);
}

std::vector<scheduler::ModelLimits> FirstLimits(const PipelineOptions& options,
                                                const ServedModel& model) {
  if (!options.limits.empty()) return options.limits;
  return std::vector(options.tenants.size(), model.limits);
}

// Tokens that end the reply and add no text: below min_tokens they are masked, so any of them is
// the end.
std::vector<base::TokenId> SilentTokens(const NewRequest& request,
                                        const scheduler::ModelLimits& limits) {
  std::vector<base::TokenId> silent(request.stop_token_ids().begin(),
                                    request.stop_token_ids().end());
  if (!request.sampling().ignore_eos) {
    silent.insert(silent.end(), limits.eos_tokens.begin(), limits.eos_tokens.end());
  }
  return silent;
}

// Keeps the place of a text call taken until its work is done.
class PermittedCall final : public TextCall {
 public:
  PermittedCall(base::Gate& gate, std::unique_ptr<TextCall> call)
      : gate_(gate), call_(std::move(call)) {}
  ~PermittedCall() override { gate_.Leave(); }
  void RunText() override { call_->RunText(); }

 private:
  base::Gate& gate_;
  std::unique_ptr<TextCall> call_;
};

}  // namespace

Pipeline::Pipeline(PipelineOptions options, ServedModel model, const Authenticator& authenticator,
                   Lifecycle& lifecycle, const base::ClockSource& clock)
    : options_(std::move(options)),
      model_(std::move(model)),
      authenticator_(authenticator),
      lifecycle_(lifecycle),
      clock_(clock),
      longest_token_bytes_(LongestTokenBytes(*model_.tokenizer)),
      gate_(options_.tenants),
      limits_(FirstLimits(options_, model_)),
      submissions_(std::numeric_limits<std::int64_t>::max()),
      names_(options_.naming_secret, options_.tenants.size()),
      live_(NumPosters(options_)),
      bounds_(options_.tenants),
      workers_({.num_threads = options_.num_text_threads,
                .num_tenants = options_.tenants.size(),
                .queue_capacity = NumPosters(options_)},
               *this) {
  const auto num_tenants = static_cast<std::int64_t>(options_.tenants.size());
  for (std::int64_t i = 0; i < num_tenants; ++i) {
    text_calls_.push_back(std::make_unique<base::Gate>(
        std::max<std::int64_t>(1, options_.max_text_calls / num_tenants)));
  }
}

Pipeline::~Pipeline() {
  workers_.Stop();
  PAGODA_CHECK(live_.size() == 0);
}

// --- taking a request in (door's thread)

absl::StatusOr<ResponseStreamRef> Pipeline::Start(const Principal& caller, CallInput input,
                                                  ReplyListener& listener) {
  auto stream = TryStart(caller, input, listener);
  (stream.ok() ? metrics_.requests_accepted : metrics_.requests_refused).Add();
  return stream;
}

absl::StatusOr<ResponseStreamRef> Pipeline::TryStart(const Principal& caller, CallInput& input,
                                                     ReplyListener& listener) {
  PAGODA_RETURN_IF_ERROR(lifecycle_.CheckAccepting());
  PAGODA_RETURN_IF_ERROR(CheckModelName(input.model));
  PAGODA_RETURN_IF_ERROR(CheckPromptSize(input.prompt));
  const RequestName name = names_.NextOf(caller.tenant());
  TenantLimits::Snapshot limits = limits_.current();
  PAGODA_ASSIGN_OR_RETURN(NewRequest request,
                          MakeRequest(caller, input, name, limits->Of(caller.tenant())));
  PAGODA_ASSIGN_OR_RETURN(
      AdmissionGate::Permit permit,
      gate_.TryEnter(request.tenant, MaxPromptTokens(input.prompt, *model_.tokenizer,
                                                     model_.limits.max_model_len)));
  ResponseStreamRef stream = MakeStream(request, name, input, listener);
  stream->Open(std::move(permit),
               std::make_unique<Preparation>(
                   Preparation{std::move(limits), std::move(request), std::move(input.prompt),
                               std::move(input.stops), std::move(input.bad_words), input.output}));
  return stream;
}

absl::StatusOr<NewRequest> Pipeline::MakeRequest(const Principal& caller, const CallInput& input,
                                                 const RequestName& name,
                                                 const scheduler::ModelLimits& limits) const {
  std::optional<std::string_view> salt;
  if (input.cache_salt.has_value()) salt = *input.cache_salt;
  PAGODA_ASSIGN_OR_RETURN(const CacheAccess access, authenticator_.Access(caller, salt, name.id));
  if (input.client_request_id.size() > kMaxClientRequestIdBytes) {
    return base::FieldError(
        "client_request_id",
        base::ToStd(absl::StrCat(input.client_request_id.size(), " bytes; at most ",
                                 kMaxClientRequestIdBytes)));
  }
  PAGODA_ASSIGN_OR_RETURN(NewRequest request,
                          NewRequest::Create(input.fields, limits, name.drawn_seed));
  request.id = name.id;
  request.tenant = caller.tenant();
  request.cache_namespace = access.cache_namespace;
  request.one_request_namespace = access.one_request;
  request.arrival = clock_.Now();
  return request;
}

absl::Status Pipeline::CheckModelName(std::string_view name) const {
  const auto& names = model_.card.names;
  if (name.empty() || std::ranges::find(names, name) != names.end()) return absl::OkStatus();
  return ModelNotFound(name, names.front());
}

absl::Status Pipeline::CheckPromptSize(const PromptInput& prompt) const {
  // Before any work is done on it: what has more bytes than the longest tokens can cover is over
  // the limit however it is cut.
  const std::size_t limit =
      longest_token_bytes_ * static_cast<std::size_t>(model_.limits.max_model_len);
  std::size_t bytes = 0;
  std::string_view field = "text";
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) bytes = text->text.size();
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt)) {
    field = "messages";
    for (const text::ChatMessage& message : chat->messages) bytes += message.content.size();
  }
  if (bytes <= limit) return absl::OkStatus();
  return base::WithReason(
      base::FieldError(
          field, base::ToStd(absl::StrCat(bytes, " bytes cannot be fewer than max_model_len = ",
                                          model_.limits.max_model_len, " tokens; send less"))),
      scheduler::kReasonContextTooLong);
}

// The tenant's own queue takes at least so long, this request's prompt included.
absl::Status Pipeline::CheckDeadline(const NewRequest& request) const {
  if (options_.step_nanos == 0 || request.deadline().is_never()) {
    return absl::OkStatus();
  }
  const std::int64_t tokens = gate_.num_queued_tokens(request.tenant);
  const std::int64_t steps = base::DivUp(tokens, std::int64_t{options_.tokens_per_step});
  const std::int64_t left = request.deadline().NanosSince(clock_.Now());
  if (steps <= left / options_.step_nanos) return absl::OkStatus();
  return DeadlineTooSoon(
      options_.tenants[request.tenant.value()].name,
      {.tokens = tokens, .steps = steps, .step_nanos = options_.step_nanos, .left_nanos = left});
}

ResponseStreamRef Pipeline::MakeStream(const NewRequest& request, const RequestName& name,
                                       CallInput& input, ReplyListener& listener) {
  ResponseStream::Identity identity;
  identity.id = request.id;
  identity.wire_id = name.wire_id;
  identity.tenant = request.tenant;
  identity.client_request_id = std::move(input.client_request_id);
  identity.arrival = request.arrival;
  identity.num_choices = request.num_choices();
  StreamOwner& owner = *this;
  auto stream =
      std::make_shared<ResponseStream>(std::move(identity), options_.stream, listener, owner);
  live_.Insert(stream);
  return stream;
}

absl::Status Pipeline::PostTextCall(const Principal& caller, std::unique_ptr<TextCall> call) {
  PAGODA_RETURN_IF_ERROR(lifecycle_.CheckAccepting());
  base::Gate& calls = *text_calls_[caller.tenant().value()];
  if (calls.TryEnter() != base::Gate::Entry::kEntered) {
    return QueueFull(caller.name(),
                     absl::StrCat("all of its Tokenize and Detokenize calls running (",
                                  options_.max_text_calls, " over all tenants)"));
  }
  workers_.Post(caller.tenant(), std::make_unique<PermittedCall>(calls, std::move(call)));
  return absl::OkStatus();
}

absl::Status Pipeline::WarmUp() {
  CallInput input;
  input.prompt = TokenPrompt{0};
  input.client_request_id = "server:warm-up";  // in the log it is no caller's
  input.fields.max_tokens = std::min(2, model_.limits.max_model_len - 1);
  return ComputeOwn(std::move(input), std::nullopt);
}

absl::Status Pipeline::AddPublicPrefix(PromptInput prompt, std::vector<base::TenantId> readers) {
  CallInput input;
  input.prompt = std::move(prompt);
  input.client_request_id = "server:public-prefix";
  input.fields.max_tokens = 1;
  return ComputeOwn(std::move(input), std::move(readers));
}

// A request of the server's own, which nobody else's can meet in the cache. It is the tenant's that
// can hold the most, so that none is too long for being nobody's.
absl::Status Pipeline::ComputeOwn(CallInput input,
                                  std::optional<std::vector<base::TenantId>> public_readers) {
  input.fields.temperature = 0.0f;
  input.fields.ignore_eos = true;
  const RequestName name = names_.NextOfServer();
  TenantLimits::Snapshot limits = limits_.current();
  const auto widest =
      std::ranges::max_element(limits->by_tenant(), {}, &scheduler::ModelLimits::capacity_blocks);
  PAGODA_ASSIGN_OR_RETURN(NewRequest request,
                          MakeRequest(authenticator_.ServersOwn(), input, name, *widest));
  request.tenant = base::TenantId(static_cast<std::uint32_t>(widest - limits->by_tenant().begin()));
  request.cache_namespace = authenticator_.OneRequestAccess(name.id).cache_namespace;
  request.one_request_namespace = true;
  JoinedReply reply;
  ResponseStreamRef stream = MakeStream(request, name, input, reply);
  metrics_.requests_accepted.Add();  // its end is counted like any other
  Preparation preparation{
      std::move(limits), std::move(request), std::move(input.prompt), {}, {}, {}};
  preparation.public_readers = std::move(public_readers);
  stream->Open({}, std::make_unique<Preparation>(std::move(preparation)));
  if (options_.num_text_threads == 0) workers_.RunPending();
  return reply.Wait(*stream).end->status;
}

// --- text work (text worker)

void Pipeline::RunText(const ResponseStreamRef& stream) {
  stream->BeginText();
  if (std::unique_ptr<Preparation> preparation = stream->TakePreparation()) {
    absl::Status status = Prepare(*stream, *preparation);
    if (!status.ok()) stream->Fail(std::move(status));
  }
  if (const auto end = stream->Pump(*model_.tokenizer, clock_.Now())) Record(*stream, *end);
  if (stream->EndText()) PostText(stream);
}

absl::Status Pipeline::Prepare(ResponseStream& stream, Preparation& preparation) {
  NewRequest& request = preparation.request;
  const scheduler::ModelLimits& limits = preparation.limits->Of(request.tenant);
  if (const auto why = stream.end_requested()) return StatusOf(*why, false);
  if (clock_.Now() >= request.deadline()) return StatusOf(FinishReason::kDeadline, false);
  PAGODA_ASSIGN_OR_RETURN(const EncodedPrompt prompt, EncodePrompt(preparation.prompt, model_));
  PAGODA_RETURN_IF_ERROR(request.AttachPrompt(prompt.tokens, limits));
  stream.ShrinkPermit(request.prompt_length());
  PAGODA_RETURN_IF_ERROR(CheckDeadline(request));
  const text::ControlTokens control = ControlTokensOf(preparation.output.skip_special_tokens);
  if (!preparation.stops.empty()) {
    PAGODA_ASSIGN_OR_RETURN(request.stop_condition,
                            text::MakeStopAutomaton(preparation.stops, *model_.tokenizer, control));
  }
  if (!request.one_request_namespace) {
    scheduler::KeyDomain domain = model_.key_domain;
    domain.epoch = engine_->epoch(request.tenant);
    const scheduler::NamespaceKey key = *request.cache_namespace;
    request.AttachKeys(key, scheduler::BlockKeyer(key, domain));
  }
  if (!preparation.bad_words.empty()) {
    PAGODA_ASSIGN_OR_RETURN(const auto words,
                            EncodeBadWords(preparation.bad_words, *model_.tokenizer));
    PAGODA_RETURN_IF_ERROR(request.AttachBadWords(words, limits));
  }
  stream.ReserveScores(request.sampling().logprobs, request.sampling().prompt_logprobs);
  if (preparation.output.echo) {
    PAGODA_ASSIGN_OR_RETURN(std::string text,
                            EchoText(preparation.prompt, prompt, *model_.tokenizer));
    stream.SetEcho(std::move(text), prompt.tokens);
  }
  stream.SetTextRules(SilentTokens(request, model_.limits), control,
                      FirstSpaceAfter(prompt.tokens, control, *model_.tokenizer));
  if (preparation.public_readers.has_value()) {
    PAGODA_RETURN_IF_ERROR(
        engine_->AddPublicPrefix(std::move(request), *std::move(preparation.public_readers)));
    stream.OnSubmitted();
    return absl::OkStatus();
  }
  return Submit(stream, std::move(request));
}

absl::Status Pipeline::Submit(ResponseStream& stream, NewRequest request) {
  if (submissions_.TryEnter() != base::Gate::Entry::kEntered) {
    return engine_failed_.load() ? base::WithReason(absl::InternalError("the engine has failed"),
                                                    reason::kEngineFailed)
                                 : StatusOf(FinishReason::kShutdown, false);
  }
  engine_->Submit(std::move(request));
  stream.OnSubmitted();
  submissions_.Leave();
  return absl::OkStatus();
}

void Pipeline::Record(const ResponseStream& stream, const ReplyEnd& end) {
  switch (end.status.code()) {
    case absl::StatusCode::kOk:
      metrics_.requests_completed.Add();
      break;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      metrics_.requests_cancelled.Add();
      break;
    default:
      metrics_.requests_failed.Add();
  }
  if (base::ReasonOf(end.status) == reason::kSlowConsumer) metrics_.slow_readers.Add();
  metrics_.prompt_tokens.Add(end.receipt.prompt_tokens);
  metrics_.cached_tokens.Add(end.receipt.cached_tokens);
  metrics_.generated_tokens.Add(end.receipt.generated_tokens);
  base::LogInfo(RequestLogLine(stream.identity(), end));
}

// --- events of the engine (engine thread)

void Pipeline::OnTokens(const engine::TokenDelivery& delivery) {
  if (const ResponseStreamRef stream = live_.Find(delivery.request)) {
    stream->OnTokens(delivery, clock_.Now());
  }
}

void Pipeline::OnPromptScores(const engine::PromptScoreDelivery& delivery) {
  if (const ResponseStreamRef stream = live_.Find(delivery.request)) {
    stream->OnPromptScores(delivery, clock_.Now());
  }
}

void Pipeline::OnFinished(scheduler::FinishEvent event) {
  if (const ResponseStreamRef stream = live_.Find(event.request.id)) {
    stream->OnFinished(std::move(event));
  }
}

void Pipeline::OnEngineFailed(const absl::Status& why) {
  base::LogError(absl::StrCat("the engine has failed: ", why.ToString()));
  engine_failed_.store(true);
  submissions_.Close();
  lifecycle_.SetEngineFailed();
  const absl::Status status =
      base::WithReason(absl::InternalError("the engine has failed while this request was inside"),
                       reason::kEngineFailed);
  for (const ResponseStreamRef& stream : live_.Snapshot()) stream->Fail(status);
}

// --- what streams ask for

void Pipeline::PostText(ResponseStreamRef stream) {
  const base::TenantId tenant = stream->identity().tenant;
  workers_.Post(tenant, std::move(stream));
}

void Pipeline::CancelInEngine(base::RequestId id, FinishReason why) { engine_->Cancel(id, why); }

void Pipeline::PauseInEngine(base::RequestId id, bool paused) {
  if (paused) metrics_.pauses.Add();
  engine_->SetPaused(id, paused);
}

void Pipeline::OnClosed(ResponseStream& stream) { live_.Erase(stream.identity().id); }

// --- drain and monitor

void Pipeline::CloseSubmissions() {
  submissions_.Close();
  submissions_.WaitUntilEmpty(std::chrono::steady_clock::time_point::max());
}

void Pipeline::CheckReaders(base::Instant now) {
  for (const ResponseStreamRef& stream : live_.Snapshot()) {
    stream->CheckReader(now, options_.slow_reader_grace_nanos);
  }
}

}  // namespace pagoda::server
