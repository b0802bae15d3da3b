#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/load/load_options.h"
#include "client/plan_options.h"

namespace pagoda::client {

// Exit codes of the `pagoda` command, also in its --help.
enum ExitCode : int { kExitOk = 0, kExitFailed = 1, kExitUsage = 2, kExitUnreachable = 3 };

enum class Command : std::uint8_t {
  kGenerate,
  kChat,
  kTokenize,
  kHealth,
  kModel,
  kBench,
  kInspect,
  kPlan
};

// What a flag leaves out stays absent, so that the server's own default holds.
struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p;
  std::optional<float> presence_penalty, frequency_penalty, repetition_penalty;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;
  std::optional<std::int32_t> n;  // choices; of `generate` alone
  std::vector<std::pair<std::uint32_t, float>> logit_bias;
  std::vector<std::uint32_t> allowed_token_ids;  // empty: all
  std::vector<std::string> bad_words;
};
struct StopOptions {
  std::optional<std::int32_t> max_tokens, min_tokens;
  std::vector<std::string> stop;
  std::vector<std::uint32_t> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str = false;
};

struct OutputOptions {
  std::optional<std::int32_t> logprobs, prompt_logprobs;
  std::vector<std::uint32_t> logprob_token_ids;
  bool echo = false;
  bool show_special_tokens = false;
};

// One invocation, as the command line gave it. Plain data; made by ParseCommandLine alone.
struct Options {
  Command command = Command::kGenerate;

  std::string server = "127.0.0.1:8470";
  std::string tls_ca, tls_cert, tls_key;  // file names; any of them turns TLS on
  std::string token_file;                 // who calls; empty: nobody
  std::optional<double> deadline_seconds;
  bool json = false;
  bool receipt = false;  // print it without a terminal too
  std::string model;

  std::optional<std::string> prompt, prompt_file;
  std::vector<std::uint32_t> prompt_ids;
  std::optional<std::string> message, system;  // chat
  std::optional<std::string> tools_file;       // chat
  std::string template_variables;              // chat
  std::string service;                         // health
  double wait_seconds = 0;                     // health

  SamplingOptions sampling;
  StopOptions stop;
  OutputOptions output;
  std::optional<std::string> cache_salt;
  bool skip_reading_prefix_cache = false;
  std::optional<std::int32_t> priority;
  std::string client_request_id;

  FileOptions file;  // inspect and plan
  LoadOptions load;  // bench
};

// The command line is over before it began: --help, --version, or a mistake.
struct EarlyExit {
  int code = kExitOk;
  std::string text;
};

// `arguments` without the program's name. A mistake names the flag and what it wants.
std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace pagoda::client
