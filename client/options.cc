#include "client/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "client/capacity.h"
#include "client/gpu_table.h"
#include "client/prompt_text.h"

namespace pagoda::client {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 ok, 1 the request failed, 2 a mistake on the command line, 3 no server could be "
    "reached.\n"
    "A flag that is left out leaves the server's default in place.";

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::pair<std::uint32_t, float>> ParseBias(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto id = ParseNumber<std::uint32_t>(text.substr(0, equals));
  const auto bias = ParseNumber<float>(text.substr(equals + 1));
  if (!id.has_value() || !bias.has_value()) return std::nullopt;
  return std::pair(*id, *bias);
}

// What a whole number may be. Said here because CLI11 wraps a negative number round where none is
// allowed, and does not say the range where a number is too large.
template <typename Number>
std::string CheckWhole(const std::string& text) {
  if (ParseNumber<Number>(text).has_value()) return {};
  using Limits = std::numeric_limits<Number>;
  return absl::StrCat("'", text, "' is no whole number from ", Limits::min(), " to ",
                      Limits::max());
}

void AddConnectionFlags(CLI::App& app, Options& options) {
  app.add_option("--server", options.server, "Server to ask, HOST:PORT")->capture_default_str();
  app.add_option("--model", options.model, "Model by name; the loaded one when left out");
  app.add_option("--deadline", options.deadline_seconds, "Give up after SECONDS")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  app.add_option("--tls-ca", options.tls_ca, "Check the server against this CA file; turns TLS on");
  app.add_option("--tls-cert", options.tls_cert, "Client certificate file; needs --tls-key");
  app.add_option("--tls-key", options.tls_key, "Client key file; needs --tls-cert");
  app.add_option("--token-file", options.token_file,
                 "File with the bearer token that says who calls");
  app.add_flag("--json", options.json, "Print exactly one JSON object");
}

void AddPromptFlags(CLI::App& app, Options& options) {
  app.add_option("--prompt", options.prompt, "Prompt text");
  app.add_option("--prompt-file", options.prompt_file, "File with the prompt text; - is stdin");
}

void AddSamplingFlags(CLI::App& app, SamplingOptions& sampling) {
  app.add_option("--temperature", sampling.temperature, "0 is greedy");
  app.add_option("--top-p", sampling.top_p, "Keep the likeliest tokens up to this probability");
  app.add_option("--top-k", sampling.top_k, "Keep the k likeliest tokens; 0 is off")
      ->check(CheckWhole<std::int32_t>);
  app.add_option("--min-p", sampling.min_p, "Drop tokens below this share of the likeliest");
  app.add_option("--seed", sampling.seed, "Same seed, same reply")
      ->check(CheckWhole<std::uint64_t>);
  app.add_option("--presence-penalty", sampling.presence_penalty, "-2 ... 2, over the reply");
  app.add_option("--frequency-penalty", sampling.frequency_penalty, "-2 ... 2, over the reply");
  app.add_option("--repetition-penalty", sampling.repetition_penalty, "> 0, over prompt and reply");
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&sampling](const std::vector<std::string>& values) {
           for (const std::string& value : values) sampling.logit_bias.push_back(*ParseBias(value));
         },
         "Add VALUE to the logit of token ID; may be repeated")
      ->type_name("ID=VALUE")
      ->check([](const std::string& value) {
        return ParseBias(value).has_value() ? std::string() : value + " is not ID=VALUE";
      })
      ->expected(1)
      ->take_all();
  app.add_option("--allowed-token-ids", sampling.allowed_token_ids, "Draw only these: 1,2,3")
      ->delimiter(',')
      ->check(CheckWhole<std::uint32_t>);
  app.add_option("--bad-word", sampling.bad_words, "Never write this; may be repeated")
      ->expected(1)
      ->take_all();
}

void AddOutputFlags(CLI::App& app, OutputOptions& output) {
  app.add_option("--logprobs", output.logprobs,
                 "With --json: log-probabilities of each token and of the N likeliest")
      ->type_name("N")
      ->check(CheckWhole<std::int32_t>);
  app.add_option("--prompt-logprobs", output.prompt_logprobs, "The same of the prompt's tokens")
      ->type_name("N")
      ->check(CheckWhole<std::int32_t>);
  app.add_option("--logprob-token-ids", output.logprob_token_ids,
                 "Log-probabilities of these and not of the likeliest: 1,2,3")
      ->delimiter(',')
      ->check(CheckWhole<std::uint32_t>);
  app.add_flag("--echo", output.echo, "Show the prompt before the reply");
  app.add_flag("--show-special-tokens", output.show_special_tokens,
               "Write control tokens into the text, by their names");
}

void AddStopFlags(CLI::App& app, StopOptions& stop) {
  app.add_option("--max-tokens", stop.max_tokens, "At most this many new tokens")
      ->check(CheckWhole<std::int32_t>);
  app.add_option("--min-tokens", stop.min_tokens, "Do not end before this many new tokens")
      ->check(CheckWhole<std::int32_t>);
  app.add_option("--stop", stop.stop, "End at this text; may be repeated")->expected(1)->take_all();
  app.add_option("--stop-token-id", stop.stop_token_ids, "End at this token; may be repeated")
      ->expected(1)
      ->take_all()
      ->check(CheckWhole<std::uint32_t>);
  app.add_flag("--ignore-eos", stop.ignore_eos, "Go on past the model's end of text");
  app.add_flag("--include-stop-str", stop.include_stop_str, "Keep the stop text in the reply");
}

void AddRequestFlags(CLI::App& app, Options& options) {
  app.add_flag("--receipt", options.receipt, "Print the receipt without a terminal too");
  AddSamplingFlags(app, options.sampling);
  AddStopFlags(app, options.stop);
  AddOutputFlags(app, options.output);
  app.add_option("--cache-salt", options.cache_salt, "Share cached prefixes only under this salt");
  app.add_flag("--skip-reading-prefix-cache", options.skip_reading_prefix_cache,
               "Compute the whole prompt, whatever is cached");
  app.add_option("--priority", options.priority, "-100 ... 100, lower first")
      ->check(CheckWhole<std::int32_t>);
  app.add_option("--request-id", options.client_request_id, "A label for the server's log");
}

CLI::App* AddCommand(CLI::App& app, Options& options, Command command, const char* name,
                     const char* description) {
  CLI::App* added = app.add_subcommand(name, description);
  added->footer(kFooter);
  added->callback([&options, command] { options.command = command; });
  AddConnectionFlags(*added, options);
  return added;
}

void AddLengthFlag(CLI::App& app, const char* name, LengthRange& range, const char* description) {
  app.add_option_function<std::string>(
         name, [&range](const std::string& text) { range = *ParseLengths(text); }, description)
      ->type_name("N or N..M")
      ->check([](const std::string& text) {
        return ParseLengths(text).has_value() ? std::string() : text + " is not N or N..M";
      });
}

void AddBenchFlags(CLI::App& app, LoadOptions& load) {
  constexpr std::int32_t kMostCallers = 1024;
  CLI::Option* const concurrency =
      app.add_option("--concurrency", load.concurrency,
                     "Closed loop: callers that wait each for its reply")
          ->capture_default_str()
          ->check(CLI::Range(1, kMostCallers));
  CLI::Option* const rate =
      app.add_option("--rate", load.rate, "Open loop: requests per second, Poisson arrivals")
          ->check(CLI::PositiveNumber)
          ->excludes(concurrency);
  app.add_option("--max-in-flight", load.max_in_flight,
                 "Open loop: requests at once; what comes beyond is sent late, and counted so")
      ->capture_default_str()
      ->needs(rate)
      ->check(CLI::Range(1, kMostCallers));
  app.add_option("--requests", load.num_requests, "End after this many")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--duration", load.duration_seconds, "Begin no request after SECONDS")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  AddLengthFlag(app, "--input-len", load.input, "Tokens of a prompt (128)");
  AddLengthFlag(app, "--output-len", load.output, "Tokens of a reply (64)");
  app.add_option("--shared-prefix", load.shared_prefix,
                 "Tokens in front of every prompt, the same in all, beside --input-len")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--seed", load.seed, "Same seed, same requests at the same times")
      ->capture_default_str()
      ->check(CheckWhole<std::uint64_t>);
  app.add_option("--allow-failures", load.allowed_failures_percent,
                 "Exit with 0 though this share fails")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
}

CLI::App* AddFileCommand(CLI::App& app, Options& options, Command command, const char* name,
                         const char* description) {
  CLI::App* added = app.add_subcommand(name, description);
  added->footer(
      "Exit codes: 0 ok, 1 the file is refused or does not fit, 2 a mistake on the command line.");
  added->callback([&options, command] { options.command = command; });
  added->add_option("FILE", options.file.path, "Model file (GGUF) or folder (safetensors)")
      ->required();
  added->add_flag("--json", options.json, "Print exactly one JSON object");
  return added;
}

// Flags that the server has too keep its names.
void AddFileCommands(CLI::App& app, Options& options) {
  FileOptions& file = options.file;
  CLI::App* inspect =
      AddFileCommand(app, options, Command::kInspect, "inspect", "Show what is in a model file");
  inspect->add_flag("--tensors", file.lists_tensors, "List every tensor");

  CLI::App* plan = AddFileCommand(app, options, Command::kPlan, "plan",
                                  "Say what a model takes and what fits, before it is served");
  plan->add_option("--context,--max-model-len", file.load.max_model_len,
                   "Tokens of prompt and reply together; 0: as the model says")
      ->check(CLI::Range(0, 1 << 24));
  plan->add_option("--batch,--max-num-seqs", file.batch, "Requests that run at once, each full")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostSequences));
  plan->add_option("--block-size", file.load.block_size, "Tokens of one KV block")
      ->capture_default_str()
      ->check(CLI::IsMember({4, 8, 16, 32, 64}));
  plan->add_option("--kv-cache-dtype", file.load.kv_cache_dtype, "auto is bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "bf16", "f32"}));
  plan->add_option("--activation-dtype", file.load.activation_dtype,
                   "On the CPU auto, int8 or f32; on a GPU auto or bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "int8", "f32", "bf16"}));
  plan->add_option("--target", file.target,
                   "cpu, or a GPU by name, as h100-80gb, or by its memory, as 80GiB")
      ->capture_default_str()
      ->check([](const std::string& text) {
        return std::string(ParseTarget(text).status().message());
      });
  plan->add_option("--memory", file.memory,
                   "What is there to fill, as 80GiB; left out: what the target has")
      ->type_name("SIZE")
      ->check([](const std::string& text) {
        return std::string(base::ParseByteSize(text).status().message());
      });
}

void AddCommands(CLI::App& app, Options& options) {
  CLI::App* generate =
      AddCommand(app, options, Command::kGenerate, "generate", "Continue a prompt");
  AddPromptFlags(*generate, options);
  generate->add_option("--prompt-ids", options.prompt_ids, "Prompt as token ids: 1,2,3")
      ->delimiter(',')
      ->check(CheckWhole<std::uint32_t>);
  generate->add_option("--n", options.sampling.n, "So many replies to the one prompt")
      ->check(CheckWhole<std::int32_t>);
  AddRequestFlags(*generate, options);

  CLI::App* chat = AddCommand(app, options, Command::kChat, "chat",
                              "Talk to the model; Ctrl-C cancels a reply, Ctrl-D leaves");
  chat->add_option("--message", options.message, "Ask this one thing and leave");
  chat->add_option("--system", options.system, "System message to begin with");
  chat->add_option("--tools", options.tools_file,
                   "File with a JSON list of the tools that the model may call; - is stdin")
      ->type_name("FILE");
  chat->add_option("--template-variables", options.template_variables,
                   "Further variables of the model's chat template, as a JSON object")
      ->type_name("JSON");
  AddRequestFlags(*chat, options);

  CLI::App* tokenize =
      AddCommand(app, options, Command::kTokenize, "tokenize", "Show the tokens of a text");
  AddPromptFlags(*tokenize, options);

  CLI::App* health =
      AddCommand(app, options, Command::kHealth, "health", "Exit 0 only if the server is serving");
  health->add_option("--wait", options.wait_seconds, "Keep asking for up to SECONDS")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  health->add_option("--service", options.service, "One service by its full name");

  AddCommand(app, options, Command::kModel, "model", "Show what the server has loaded");
  AddBenchFlags(*AddCommand(app, options, Command::kBench, "bench",
                            "Put a load on the server and measure; Ctrl-C ends it early"),
                options.load);
  AddFileCommands(app, options);
}

// What a plan's flags make impossible together. Empty when all is well.
std::string FindPlanConflict(const FileOptions& file) {
  const auto target = ParseTarget(file.target);
  if (!target.ok()) return std::string(target.status().message());
  if (target->is_gpu && !target->memory_bytes.has_value() && !file.memory.has_value()) {
    return "plan: --target gpu does not say how much memory it has; name the GPU or its memory, as "
           "--target 80GiB";
  }
  const std::string& activation = file.load.activation_dtype;
  if (activation == "auto" || target->is_gpu == (activation == "bf16")) return {};
  return absl::StrCat("plan: --activation-dtype ", activation, " is not built for ", target->name,
                      "; it has auto", target->is_gpu ? " and bf16" : ", int8 and f32");
}

// The flags whose values go into a request as text.
std::string FindBadText(const Options& options) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"--model", options.model},
      {"--prompt", options.prompt.value_or("")},
      {"--message", options.message.value_or("")},
      {"--system", options.system.value_or("")},
      {"--template-variables", options.template_variables},
      {"--request-id", options.client_request_id},
      {"--service", options.service}};
  for (const std::string& stop : options.stop.stop) texts.emplace_back("--stop", stop);
  for (const std::string& word : options.sampling.bad_words) texts.emplace_back("--bad-word", word);
  for (const auto& [flag, text] : texts) {
    if (const absl::Status status = CheckText(flag, text); !status.ok()) {
      return std::string(status.message());
    }
  }
  return {};
}

// What CLI11 cannot say: which flags go together. Empty when all is well.
std::string FindConflict(const Options& options) {
  const int prompts = (options.prompt ? 1 : 0) + (options.prompt_file ? 1 : 0) +
                      (options.prompt_ids.empty() ? 0 : 1);
  if (options.command == Command::kGenerate && prompts != 1) {
    return "generate: give exactly one of --prompt, --prompt-file, --prompt-ids";
  }
  if (options.command == Command::kTokenize && prompts != 1) {
    return "tokenize: give exactly one of --prompt, --prompt-file";
  }
  if (options.command == Command::kChat && options.json && !options.message) {
    return "chat: --json needs --message";
  }
  if (options.tools_file == "-" && !options.message) return "chat: --tools - needs --message";
  if (options.command == Command::kBench && !options.load.num_requests &&
      !options.load.duration_seconds) {
    return "bench: give --requests or --duration, or both";
  }
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return "give both of --tls-cert and --tls-key, or neither";
  }
  const bool asks_for_scores = options.output.logprobs || options.output.prompt_logprobs ||
                               !options.output.logprob_token_ids.empty();
  if (asks_for_scores && !options.json) {
    return "log-probabilities are printed with --json alone; add it, or leave them out";
  }
  if (options.command == Command::kPlan) return FindPlanConflict(options.file);
  return FindBadText(options);
}

// A word where a command should be. CLI11 says only that one is missing.
std::string FindUnknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return {};
  std::string known;
  for (const CLI::App* const command : app.get_subcommands({})) {
    if (command->check_name(arguments.front())) return {};
    absl::StrAppend(&known, known.empty() ? "" : ", ", command->get_name());
  }
  return absl::StrCat("there is no command '", arguments.front(), "'; there are ", known);
}

}  // namespace

std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& arguments) {
  Options options;
  CLI::App app("Client of a Pagoda inference server.", "pagoda");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "pagoda 0.1.0");
  AddCommands(app, options);
  if (const std::string unknown = FindUnknownCommand(app, arguments); !unknown.empty()) {
    return EarlyExit{kExitUsage, "pagoda: " + unknown + "\nTo do: see pagoda --help\n"};
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return EarlyExit{kExitOk, (chosen.empty() ? app : *chosen[0]).help()};
  } catch (const CLI::CallForVersion& version) {
    return EarlyExit{kExitOk, std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return EarlyExit{kExitUsage, std::string("pagoda: ") + error.what() +
                                     "\nTo do: see pagoda --help, or pagoda COMMAND --help\n"};
  }
  if (const std::string conflict = FindConflict(options); !conflict.empty()) {
    return EarlyExit{kExitUsage, "pagoda: " + conflict + "\n"};
  }
  return options;
}

}  // namespace pagoda::client
