#include "server/grpc/inference_service.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/core/text_calls.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/reply_conversion.h"
#include "server/grpc/request_conversion.h"
#include "server/grpc/status_mapping.h"
#include "server/grpc/stream_reactor.h"

namespace pagoda::server {
namespace {

using ::grpc::ServerUnaryReactor;
using Bytes = InferenceService::Bytes;
using Context = InferenceService::Context;
using Tokens = std::vector<base::TokenId>;

// Who calls, and what they then reach.
struct Entered {
  Principal caller;
  Pipeline* pipeline;
};

absl::StatusOr<Entered> Enter(const FrontDesk& desk, const Context& context) {
  PAGODA_ASSIGN_OR_RETURN(Principal caller,
                          desk.authenticator().Authenticate(CredentialsOf(context)));
  PAGODA_ASSIGN_OR_RETURN(Pipeline * pipeline, desk.Accepting());
  return Entered{std::move(caller), pipeline};
}

// A unary call that is to be finished, from any thread, once.
struct Unary {
  Context* context;
  Bytes* response;
  ServerUnaryReactor* reactor;

  void Fail(const absl::Status& status) const {
    AddTrailers(status, *context);
    reactor->Finish(ToGrpcStatus(status));
  }
  void Reply(const google::protobuf::MessageLite& message) const {
    *response = SerializeMessage(message);
    reactor->Finish(::grpc::Status::OK);
  }
};

void FinishTokenize(const Unary& call, const ServedModel& model,
                    const absl::StatusOr<Tokens>& tokens, std::string rendered) {
  if (!tokens.ok()) return call.Fail(tokens.status());
  v1::TokenizeResponse reply;
  reply.mutable_token_ids()->Assign(tokens->begin(), tokens->end());
  for (base::TokenId id : *tokens) {
    reply.add_token_bytes(std::string(model.tokenizer->Bytes(id)));
  }
  reply.set_rendered_text(std::move(rendered));
  call.Reply(reply);
}

// A token takes some ninety bytes until the reply is written, and a text may have one for each
// byte.
constexpr std::size_t kMaxTokenizeBytes = std::size_t{4} << 20;

absl::Status CheckTokenizeSize(const v1::TokenizeRequest& request) {
  const std::size_t size = request.ByteSizeLong();
  if (size <= kMaxTokenizeBytes) return absl::OkStatus();
  return base::FieldError(request.has_chat() ? "chat" : "text",
                          absl::StrCat("the request has ", size, " bytes; at most ",
                                       kMaxTokenizeBytes, " are tokenized at once"));
}

absl::Status PostTokenize(const FrontDesk& desk, const Bytes& bytes, const Unary& call) {
  PAGODA_ASSIGN_OR_RETURN(const Entered entered, Enter(desk, *call.context));
  const auto& [caller, pipeline] = entered;
  PAGODA_ASSIGN_OR_RETURN(auto request, ParseMessage<v1::TokenizeRequest>(bytes));
  PAGODA_RETURN_IF_ERROR(CheckTokenizeSize(request));
  PAGODA_RETURN_IF_ERROR(pipeline->CheckModelName(request.model()));
  PAGODA_ASSIGN_OR_RETURN(PromptInput input, ToPromptInput(request));
  const ServedModel& model = pipeline->model();
  auto done = [call, &model](const absl::StatusOr<Tokens>& tokens, std::string rendered) {
    FinishTokenize(call, model, tokens, std::move(rendered));
  };
  return pipeline->PostTextCall(caller, MakeTokenizeCall(std::move(input), model, std::move(done)));
}

absl::Status PostDetokenize(const FrontDesk& desk, const Bytes& bytes, const Unary& call) {
  PAGODA_ASSIGN_OR_RETURN(const Entered entered, Enter(desk, *call.context));
  const auto& [caller, pipeline] = entered;
  PAGODA_ASSIGN_OR_RETURN(const auto request, ParseMessage<v1::DetokenizeRequest>(bytes));
  PAGODA_RETURN_IF_ERROR(pipeline->CheckModelName(request.model()));
  const bool skip = !request.has_skip_special_tokens() || request.skip_special_tokens();
  auto done = [call](const absl::StatusOr<std::string>& text) {
    if (!text.ok()) return call.Fail(text.status());
    v1::DetokenizeResponse reply;
    reply.set_text(*text);
    call.Reply(reply);
  };
  return pipeline->PostTextCall(
      caller, MakeDetokenizeCall(Tokens(request.token_ids().begin(), request.token_ids().end()),
                                 skip, pipeline->model(), std::move(done)));
}

absl::Status ReplyModel(const FrontDesk& desk, const Bytes& bytes, const Unary& call) {
  PAGODA_ASSIGN_OR_RETURN(const Entered entered, Enter(desk, *call.context));
  PAGODA_ASSIGN_OR_RETURN(const auto request, ParseMessage<v1::GetModelRequest>(bytes));
  PAGODA_RETURN_IF_ERROR(entered.pipeline->CheckModelName(request.model()));
  call.Reply(ToModel(entered.pipeline->model()));
  return absl::OkStatus();
}

absl::Status ReplyModels(const FrontDesk& desk, const Bytes& bytes, const Unary& call) {
  PAGODA_ASSIGN_OR_RETURN(const Entered entered, Enter(desk, *call.context));
  PAGODA_RETURN_IF_ERROR(ParseMessage<v1::ListModelsRequest>(bytes).status());
  v1::ListModelsResponse reply;
  *reply.add_models() = ToModel(entered.pipeline->model());
  call.Reply(reply);
  return absl::OkStatus();
}

ServerUnaryReactor* FailUnlessOk(const absl::Status& status, const Unary& call) {
  if (!status.ok()) call.Fail(status);
  return call.reactor;
}

}  // namespace

template <typename Request>
InferenceService::StreamWriter* InferenceService::StartStream(Context& context,
                                                              const Bytes& bytes) {
  auto* reactor = new StreamReactor(context, streams_);
  const auto start = [&]() -> absl::Status {
    PAGODA_ASSIGN_OR_RETURN(const Entered entered, Enter(desk_, context));
    PAGODA_ASSIGN_OR_RETURN(Request request, ParseMessage<Request>(bytes));
    PAGODA_ASSIGN_OR_RETURN(CallInput input, ToCallInput(request));
    input.fields.deadline =
        ToInstant(context.deadline(), std::chrono::system_clock::now(), clock_.Now());
    reactor->Start(*entered.pipeline, entered.caller, std::move(input));
    return absl::OkStatus();
  };
  if (absl::Status status = start(); !status.ok()) reactor->Refuse(status);
  return reactor;
}

InferenceService::StreamWriter* InferenceService::Generate(Context* context, const Bytes* request) {
  return StartStream<v1::GenerateRequest>(*context, *request);
}

InferenceService::StreamWriter* InferenceService::Chat(Context* context, const Bytes* request) {
  return StartStream<v1::ChatRequest>(*context, *request);
}

ServerUnaryReactor* InferenceService::Tokenize(Context* context, const Bytes* request,
                                               Bytes* response) {
  const Unary call{context, response, context->DefaultReactor()};
  return FailUnlessOk(PostTokenize(desk_, *request, call), call);
}

ServerUnaryReactor* InferenceService::Detokenize(Context* context, const Bytes* request,
                                                 Bytes* response) {
  const Unary call{context, response, context->DefaultReactor()};
  return FailUnlessOk(PostDetokenize(desk_, *request, call), call);
}

ServerUnaryReactor* InferenceService::GetModel(Context* context, const Bytes* request,
                                               Bytes* response) {
  const Unary call{context, response, context->DefaultReactor()};
  return FailUnlessOk(ReplyModel(desk_, *request, call), call);
}

ServerUnaryReactor* InferenceService::ListModels(Context* context, const Bytes* request,
                                                 Bytes* response) {
  const Unary call{context, response, context->DefaultReactor()};
  return FailUnlessOk(ReplyModels(desk_, *request, call), call);
}

}  // namespace pagoda::server
