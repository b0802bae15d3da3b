#pragma once

#include "base/runtime/mutex.h"
#include "server/core/response_stream.h"

namespace pagoda::server {

// A whole reply: the stream's parts, joined. Unary answers and the server's own warm-up are this,
// never another path. Threads: Wait on one; OnReplyReady on a text worker.
class JoinedReply : public ReplyListener {
 public:
  void OnReplyReady() override PAGODA_EXCLUDES(mutex_);

  // Takes everything that is there. Returns whether the reply is whole.
  bool TakeAll(ResponseStream& stream);
  // Blocks until the reply is whole.
  const ReplyPart& Wait(ResponseStream& stream) PAGODA_EXCLUDES(mutex_);
  // What has come so far.
  const ReplyPart& joined() const { return joined_; }

 private:
  ReplyPart joined_;
  ReplyPart part_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool ready_ PAGODA_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::server
