#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/errors.h"
#include "client/prompt_text.h"
#include "client/reply.h"
#include "client/requests.h"
#include "pagoda/v1/inference.grpc.pb.h"

namespace pagoda::client {
namespace {

void ShowPart(std::string_view title, const std::string& text, Console& console) {
  console.out << "--- " << title << "\n" << text;
  if (!text.ends_with('\n')) console.out << '\n';
}

void ShowChoices(const Reply& reply, Console& console) {
  if (!reply.prompt.text().empty()) ShowPart("prompt", reply.prompt.text(), console);
  for (std::uint32_t i = 0; i < reply.choices.size(); ++i) {
    ShowPart(absl::StrCat("choice ", i, " (", base::ToAbsl(ReasonOf(reply, i)), ")"),
             reply.choices[i].text, console);
  }
  console.out << std::flush;
}

}  // namespace

int RunGenerate(const Options& options, Console& console) {
  std::string prompt = options.prompt.value_or("");
  if (options.prompt_file.has_value()) {
    auto read = ReadTextFile(*options.prompt_file, console.in);
    if (!read.ok()) return ReportError(options, LocalError(read.status()), "generate", console);
    prompt = *std::move(read);
  }
  const auto channel = OpenChannel(options);
  if (!channel.ok()) return ReportError(options, LocalError(channel.status()), "generate", console);
  const auto stub = v1::InferenceService::NewStub(*channel);
  grpc::ClientContext context;
  ApplyDeadline(options.deadline_seconds, context);
  const auto stream = stub->Generate(&context, MakeGenerateRequest(options, prompt));
  Reply reply;
  bool in_line = false;
  // Several choices grow side by side, so they are shown whole, one after the other.
  const bool shows_whole = options.sampling.n.value_or(1) > 1;
  const auto show = [&](std::string_view text) {
    if (options.json || shows_whole) return;
    console.out << text << std::flush;
    in_line = text.back() != '\n';
  };
  const grpc::Status status = ReadReply(context, *stream, console, show, reply);
  if (in_line) console.out << std::endl;
  // A call that failed has a request id only if something of a reply had come.
  const bool has_reply = status.ok() || !reply.request_id.empty();
  if (shows_whole && !options.json && has_reply) ShowChoices(reply, console);
  if (status.error_code() == grpc::StatusCode::CANCELLED && !options.json) {
    console.err << "[cancelled]" << std::endl;  // whoever pressed Ctrl-C knows why
    return kExitFailed;
  }
  if (!status.ok()) return ReportError(options, DecodeError(status), "generate", console);
  if (options.json) {
    console.out << ReplyAsJson(reply).dump() << std::endl;
  } else if (options.receipt || console.err_is_terminal) {
    console.err << ReceiptAsText(reply) << std::endl;
  }
  return kExitOk;
}

}  // namespace pagoda::client
