// The commands that ask once and print: tokenize and model.
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/errors.h"
#include "client/progress.h"
#include "client/prompt_text.h"
#include "pagoda/v1/inference.grpc.pb.h"

namespace pagoda::client {
namespace {

using nlohmann::json;
using Stub = v1::InferenceService::Stub;

// Opens the channel, makes one unary call with progress and Ctrl-C, and reports what fails. `call`
// is (stub, context) -> status.
template <typename Call>
int AskOnce(const Options& options, Console& console, std::string_view what, Call call) {
  const auto channel = OpenChannel(options);
  if (!channel.ok()) return ReportError(options, LocalError(channel.status()), what, console);
  const auto stub = v1::InferenceService::NewStub(*channel);
  grpc::ClientContext context;
  ApplyDeadline(options.deadline_seconds, context);
  const Interrupts::Scope cancel(console.interrupts, [&context] { context.TryCancel(); });
  Progress progress(console, "waiting for the server");
  const grpc::Status status = call(*stub, context);
  progress.Stop();
  return status.ok() ? kExitOk : ReportError(options, DecodeError(status), what, console);
}

void PrintTokens(const v1::TokenizeResponse& response, std::ostream& out) {
  for (int i = 0; i < response.token_ids_size(); ++i) {
    out << response.token_ids(i);
    // Bytes of a token need not be text of their own.
    if (i < response.token_bytes_size())
      out << "\t\"" << absl::CHexEscape(response.token_bytes(i)) << '"';
    out << "\n";
  }
  out << std::flush;
}

json TokensAsJson(const v1::TokenizeResponse& response) {
  json hex = json::array();
  for (const std::string& bytes : response.token_bytes())
    hex.push_back(absl::BytesToHexString(bytes));
  return {{"token_ids",
           std::vector<std::uint32_t>(response.token_ids().begin(), response.token_ids().end())},
          {"token_bytes_hex", hex}};
}

json ModelAsJson(const v1::Model& model) {
  json made = {{"names", std::vector<std::string>(model.names().begin(), model.names().end())},
               {"architecture", model.architecture()},
               {"num_parameters", model.num_parameters()},
               {"weight_format", model.weight_format()},
               {"weight_bytes", model.weight_bytes()},
               {"activation_dtype", model.activation_dtype()},
               {"kv_cache_dtype", model.kv_cache_dtype()},
               {"numerics_id", model.numerics_id()},
               {"vocabulary_size", model.vocabulary_size()},
               {"max_model_len", model.max_model_len()},
               {"context_length", model.context_length()},
               {"block_size", model.block_size()},
               {"num_kv_blocks", model.num_kv_blocks()},
               {"max_num_seqs", model.max_num_seqs()},
               {"max_num_batched_tokens", model.max_num_batched_tokens()},
               {"eos_token_ids", std::vector<std::uint32_t>(model.eos_token_ids().begin(),
                                                            model.eos_token_ids().end())},
               {"has_chat_template", model.has_chat_template()},
               {"kv_bytes_per_token", model.kv_bytes_per_token()}};
  if (model.has_bos_token_id()) made["bos_token_id"] = model.bos_token_id();
  return made;
}

std::string Mebibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MiB", bytes / (1 << 20));
  return text;
}

void PrintModel(const v1::Model& model, std::ostream& out) {
  const double tokens = static_cast<double>(model.num_kv_blocks()) * model.block_size();
  out << "Names         " << absl::StrJoin(model.names(), ", ") << "\n"
      << "Architecture  " << model.architecture() << ", " << model.num_parameters()
      << " parameters, vocabulary of " << model.vocabulary_size() << "\n"
      << "Weights       " << model.weight_format() << ", "
      << Mebibytes(static_cast<double>(model.weight_bytes())) << "\n"
      << "Arithmetic    activations " << model.activation_dtype() << ", " << model.numerics_id()
      << "\n"
      << "Context       " << model.max_model_len()
      << " tokens, prompt and reply together (made for " << model.context_length() << ")\n"
      << "KV cache      " << model.kv_cache_dtype() << ", " << model.num_kv_blocks()
      << " blocks of " << model.block_size() << " tokens, "
      << Mebibytes(tokens * static_cast<double>(model.kv_bytes_per_token())) << "\n"
      << "Batch         " << model.max_num_seqs() << " sequences, "
      << model.max_num_batched_tokens() << " tokens in a step\n"
      << "Chat          "
      << (model.has_chat_template() ? "yes, by its own template" : "no template") << std::endl;
}

}  // namespace

int RunTokenize(const Options& options, Console& console) {
  v1::TokenizeRequest request;
  request.set_model(options.model);
  request.set_text(options.prompt.value_or(""));
  if (options.prompt_file.has_value()) {
    const auto read = ReadTextFile(*options.prompt_file, console.in);
    if (!read.ok()) return ReportError(options, LocalError(read.status()), "tokenize", console);
    request.set_text(*read);
  }
  v1::TokenizeResponse response;
  const int code =
      AskOnce(options, console, "tokenize", [&](Stub& stub, grpc::ClientContext& context) {
        return stub.Tokenize(&context, request, &response);
      });
  if (code != kExitOk) return code;
  if (options.json) {
    console.out << TokensAsJson(response).dump() << std::endl;
  } else {
    PrintTokens(response, console.out);
  }
  return kExitOk;
}

int RunModel(const Options& options, Console& console) {
  v1::GetModelRequest request;
  request.set_model(options.model);
  v1::Model model;
  const int code =
      AskOnce(options, console, "model", [&](Stub& stub, grpc::ClientContext& context) {
        return stub.GetModel(&context, request, &model);
      });
  if (code != kExitOk) return code;
  if (options.json) {
    console.out << ModelAsJson(model).dump() << std::endl;
  } else {
    PrintModel(model, console.out);
  }
  return kExitOk;
}

}  // namespace pagoda::client
