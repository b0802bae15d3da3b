#include "server/grpc/stream_reactor.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "server/grpc/reply_conversion.h"
#include "server/grpc/status_mapping.h"

namespace pagoda::server {

StreamReactor::StreamReactor(::grpc::CallbackServerContext& context, base::Gate& open)
    : context_(context), open_(open) {
  PAGODA_CHECK(open_.TryEnter() == base::Gate::Entry::kEntered);
}

void StreamReactor::Start(Pipeline& pipeline, const Principal& caller, CallInput input) {
  auto stream = pipeline.Start(caller, std::move(input), *this);
  if (!stream.ok()) return Refuse(stream.status());
  numerics_id_ = pipeline.model().card.numerics_id;
  stream_ = *std::move(stream);
  Pump();
}

void StreamReactor::Refuse(const absl::Status& status) {
  AddTrailers(status, context_);
  Finish(ToGrpcStatus(status));
}

void StreamReactor::OnWriteDone(bool ok) {
  // The peer is gone; the end still comes through the stream.
  if (!ok) stream_->Cancel();
  Pump();
}

// gRPC tells of a deadline that has passed as of a caller that went.
void StreamReactor::OnCancel() {
  if (stream_ == nullptr) return;
  const bool is_late = std::chrono::system_clock::now() >= context_.deadline();
  stream_->Cancel(is_late ? scheduler::FinishReason::kDeadline
                          : scheduler::FinishReason::kCancelled);
}

void StreamReactor::OnDone() {
  base::Gate& open = open_;
  delete this;
  open.Leave();
}

void StreamReactor::Pump() {
  switch (stream_->Take(part_)) {
    case ResponseStream::Taken::kNothing:
      return;  // from here on a worker may be inside, and this object even gone
    case ResponseStream::Taken::kPart:
      ToGenerateResponse(part_, stream_->identity().wire_id, numerics_id_, response_);
      message_ = SerializeMessage(response_);
      StartWrite(&message_);
      return;
    case ResponseStream::Taken::kLast:
      FinishCall();
      return;
  }
}

void StreamReactor::FinishCall() {
  const std::string& id = stream_->identity().wire_id;
  const absl::Status& status = part_.end->status;
  AddTrailers(status, context_);
  if (!status.ok() && !part_.has_content() && !part_.end->has_receipt) {
    Finish(ToGrpcStatus(status, id));
    return;
  }
  ToGenerateResponse(part_, id, numerics_id_, response_);
  message_ = SerializeMessage(response_);
  StartWriteAndFinish(&message_, {}, ToGrpcStatus(status, id));
}

}  // namespace pagoda::server
