// A conversation. The history is sent whole with every turn; the server's prefix cache makes that
// cheap.
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kClear = "/clear";

v1::ChatMessage Message(std::string role, std::string content) {
  v1::ChatMessage message;
  message.set_role(std::move(role));
  message.set_content(std::move(content));
  return message;
}

// Each element of the list that the file holds, as a text of its own.
absl::StatusOr<std::vector<std::string>> ReadTools(const Options& options, Console& console) {
  std::vector<std::string> tools;
  if (!options.tools_file.has_value()) return tools;
  PAGODA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(*options.tools_file, console.in));
  // Templates write tools out, so the order of their entries counts.
  const auto list = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(*options.tools_file, ": ",
                                                   list.is_discarded() ? "is no JSON" : "is JSON",
                                                   ", expected a JSON list of tools"));
  }
  for (const auto& tool : list) tools.push_back(tool.dump());
  return tools;
}

class Conversation {
 public:
  Conversation(const Options& options, std::vector<std::string> tools, Console& console,
               const std::shared_ptr<grpc::Channel>& channel)
      : options_(options),
        tools_(std::move(tools)),
        console_(console),
        stub_(v1::InferenceService::NewStub(channel)) {
    Forget();
  }

  // One question and its answer. A cancelled answer stays in the history as far as it came, so that
  // what is sent is what was seen; a failed turn leaves no trace. Returns: the exit code.
  int Ask(const std::string& question) {
    history_.push_back(Message("user", question));
    Reply reply;
    grpc::ClientContext context;
    ApplyDeadline(options_.deadline_seconds, context);
    v1::ChatRequest request = MakeChatRequest(options_, history_);
    for (const std::string& tool : tools_) request.add_tools_json(tool);
    const auto stream = stub_->Chat(&context, request);
    const grpc::Status status =
        ReadReply(context, *stream, console_, [this](std::string_view text) { Show(text); }, reply);
    EndLine();
    const bool was_cut =
        status.error_code() == grpc::StatusCode::CANCELLED && !reply.text().empty();
    if (status.ok() || was_cut) {
      history_.push_back(Message("assistant", reply.text()));
    } else {
      history_.pop_back();
    }
    if (status.error_code() == grpc::StatusCode::CANCELLED && !options_.message.has_value()) {
      console_.err << "[cancelled]" << std::endl;  // whoever pressed Ctrl-C knows why
      return kExitFailed;
    }
    if (!status.ok()) return ReportError(options_, DecodeError(status), "chat", console_);
    Report(reply);
    return kExitOk;
  }

  void Forget() {
    history_.clear();
    if (options_.system) history_.push_back(Message("system", *options_.system));
  }

 private:
  void Show(std::string_view text) {
    if (options_.json) return;
    console_.out << text << std::flush;
    in_line_ = text.back() != '\n';
  }

  void EndLine() {
    if (in_line_) console_.out << std::endl;
    in_line_ = false;
  }

  void Report(const Reply& reply) {
    if (options_.json) {
      console_.out << ReplyAsJson(reply).dump() << std::endl;
    } else if (options_.receipt || console_.err_is_terminal) {
      console_.err << ReceiptAsText(reply) << std::endl;
    }
  }

  const Options& options_;
  const std::vector<std::string> tools_;
  Console& console_;
  const std::unique_ptr<v1::InferenceService::Stub> stub_;
  std::vector<v1::ChatMessage> history_;
  bool in_line_ = false;
};

// Why a line is not sent: a command that there is not, or no text. Empty when it is.
std::string WhyNotAsked(const std::string& line) {
  if (line.starts_with('/') && !line.starts_with("//")) {
    return absl::StrCat("there is no ", line.substr(0, line.find(' ')), "; there is ",
                        base::ToAbsl(kClear), ". A text that begins with / is written with //.");
  }
  return std::string(CheckText("the line", line).message());
}

// Until the end of input. A turn that fails is reported and the conversation goes on, unless no
// server is there at all.
int Converse(Conversation& conversation, Console& console) {
  const auto show_prompt = [&console] {
    if (console.out_is_terminal) console.out << kPrompt << std::flush;
  };
  // Between replies Ctrl-C drops the line that is being typed; the terminal has already forgotten
  // it.
  const Interrupts::Scope idle(console.interrupts, [&console, show_prompt] {
    console.out << "\n";
    show_prompt();
  });
  if (console.out_is_terminal) {
    console.out << "Ctrl-C cancels a reply, Ctrl-D leaves, /clear forgets.\n";
  }
  std::string line;
  for (show_prompt(); std::getline(console.in, line); show_prompt()) {
    if (line.empty()) continue;
    if (line == kClear) {
      conversation.Forget();
      continue;
    }
    if (const std::string why = WhyNotAsked(line); !why.empty()) {
      console.err << why << std::endl;
      continue;
    }
    if (line.starts_with("//")) line.erase(0, 1);
    if (conversation.Ask(line) == kExitUnreachable) return kExitUnreachable;
  }
  if (console.out_is_terminal) console.out << std::endl;
  return kExitOk;
}

}  // namespace

int RunChat(const Options& options, Console& console) {
  auto tools = ReadTools(options, console);
  if (!tools.ok()) return ReportError(options, LocalError(tools.status()), "chat", console);
  auto channel = OpenChannel(options);
  if (!channel.ok()) return ReportError(options, LocalError(channel.status()), "chat", console);
  Conversation conversation(options, *std::move(tools), console, *std::move(channel));
  if (options.message.has_value()) return conversation.Ask(*options.message);
  return Converse(conversation, console);
}

}  // namespace pagoda::client
