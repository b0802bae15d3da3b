#include "server/core/joined_reply.h"

namespace pagoda::server {

void JoinedReply::OnReplyReady() {
  // Notified under the lock: the waiter may destroy this as soon as it can run.
  base::MutexLock lock(mutex_);
  ready_ = true;
  changed_.NotifyAll();
}

bool JoinedReply::TakeAll(ResponseStream& stream) {
  while (!joined_.end.has_value()) {
    const ResponseStream::Taken taken = stream.Take(part_);
    joined_.Append(part_);
    if (taken == ResponseStream::Taken::kNothing) return false;
    if (taken == ResponseStream::Taken::kLast) joined_.end = part_.end;
  }
  return true;
}

const ReplyPart& JoinedReply::Wait(ResponseStream& stream) {
  while (!TakeAll(stream)) {
    base::MutexLock lock(mutex_);
    while (!ready_) changed_.Wait(mutex_);
    ready_ = false;
  }
  return joined_;
}

}  // namespace pagoda::server
