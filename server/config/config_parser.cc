#include "server/config/config_parser.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "server/config/check_config.h"

namespace pagoda::server {
namespace {

constexpr const char* kVersion = "pagoda-server 0.1.0";
constexpr std::string_view kPrefix = "PAGODA_";

// PAGODA_MAX_NUM_SEQS for --max-num-seqs.
std::string VariableOf(const std::string& flag) {
  std::string name(kPrefix);
  for (const char c : flag) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

struct Requests {
  bool print_config = false;
  bool check_config = false;
  bool digest_token = false;
};

void AddModelFlags(CLI::App& app, ServerConfig& config) {
  const auto group = "Model";
  app.add_option("--model", config.model, "Model: a GGUF file, or a folder with safetensors")
      ->group(group);
  app.add_option("--served-model-name", config.served_model_name,
                 "Name that requests may use; repeat for more. Default: the file's name")
      ->group(group)
      ->default_str("");
  app.add_option("--device", config.device,
                 "cpu; emulated-cuda: the CUDA kernels on the host, for tests; cuda")
      ->group(group)
      ->check(CLI::IsMember({"cpu", "emulated-cuda", "cuda"}));
  app.add_option("--max-model-len", config.max_model_len,
                 "Tokens of prompt and reply together; 0: as the model says")
      ->group(group)
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--activation-dtype", config.activation_dtype,
                 "auto: int8 for quantized weights, else f32")
      ->group(group)
      ->check(CLI::IsMember({"auto", "f32", "bf16", "int8"}));
  app.add_option("--kv-cache-dtype", config.kv_cache_dtype, "auto: bf16")
      ->group(group)
      ->check(CLI::IsMember({"auto", "bf16", "f32"}));
}

void AddCapacityFlags(CLI::App& app, ServerConfig& config) {
  const auto group = "Capacity";
  app.add_option("--threads", config.threads,
                 "Compute threads; 0: one per core that the CPU quota allows")
      ->group(group)
      ->check(CLI::Range(0, 1024));
  app.add_option("--kv-cache-memory", config.kv_cache_memory,
                 "Size of the KV pool, as 512MiB; auto: half of what is free after the weights")
      ->group(group);
  app.add_option("--max-num-seqs", config.max_num_seqs, "Sequences that run at once")
      ->group(group)
      ->check(CLI::Range(1, 4096));
  app.add_option("--max-num-batched-tokens", config.max_num_batched_tokens, "Tokens of one step")
      ->group(group)
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--block-size", config.block_size, "Tokens of one KV block: 4, 8, 16, 32 or 64")
      ->group(group)
      ->check(CLI::Range(4, 64));
  app.add_option("--max-queued-requests", config.max_queued_requests,
                 "Requests accepted and not finished")
      ->group(group)
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-queued-tokens", config.max_queued_tokens,
                 "Prompt tokens accepted and not finished")
      ->group(group)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--cached-block-ttl", config.cached_block_ttl_s,
                 "Seconds after which a cached block that nobody asked for is dropped and zeroed; "
                 "0: kept until its place is needed")
      ->group(group)
      ->check(CLI::Range(0.0, 31'536'000.0));
  app.add_option("--public-prefixes", config.public_prefixes,
                 "File of beginnings of prompts that are computed once and shared by all tenants, "
                 "or by those it names")
      ->group(group);
  app.add_option("--text-threads", config.text_threads, "Threads for templates and tokenising")
      ->group(group)
      ->check(CLI::Range(1, 64));
}

void AddServingFlags(CLI::App& app, ServerConfig& config) {
  const auto group = "Serving";
  app.add_option("--listen", config.listen, "HOST:PORT; port 0 takes a free one")->group(group);
  app.add_option("--port-file", config.port_file, "Write the port here once the server listens")
      ->group(group);
  app.add_option("--admin-listen", config.admin_listen,
                 "HOST:PORT of the admin service, on this machine only; without it there is none")
      ->group(group);
  app.add_option("--drain-timeout", config.drain_timeout_s,
                 "Seconds that running replies get after SIGTERM")
      ->group(group)
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--slow-reader-grace", config.slow_reader_grace_s,
                 "Seconds that a client may leave a full reply buffer unread")
      ->group(group)
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option(
         "--step-time", config.step_time_s,
         "Seconds that a full step takes on this machine. A request is refused at once when "
         "its tenant's own queue alone takes longer than its deadline leaves; 0: none is")
      ->group(group)
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--max-request-size", config.max_request_size, "Largest request message")
      ->group(group);
  app.add_option("--min-ping-interval", config.min_ping_interval_s,
                 "Seconds; clients that ping more often are cut off")
      ->group(group)
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option(
         "--journal-dir", config.journal_dir,
         "Keep what the scheduler is told, and write it to a file in this folder when a "
         "step fails, an invariant is broken or DumpJournal asks; without it nothing is kept")
      ->group(group);
  app.add_option("--journal-memory", config.journal_memory,
                 "Memory for that, as 64MiB; what is older is forgotten")
      ->group(group);
  app.add_option("--log-level", config.log_level, "debug, info, warning or error")
      ->group(group)
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
}

void AddSecurityFlags(CLI::App& app, ServerConfig& config) {
  const auto group = "Security";
  app.add_option("--tls-cert", config.tls_cert, "Server certificate chain (PEM)")->group(group);
  app.add_option("--tls-key", config.tls_key, "Its private key (PEM)")->group(group);
  app.add_option("--tls-client-ca", config.tls_client_ca,
                 "Require client certificates signed by these (PEM)")
      ->group(group);
  app.add_option("--tenants", config.tenants,
                 "File of tenants and the digests of their credentials; every call must then say "
                 "who it is")
      ->group(group);
  app.add_flag(
         "--anonymous", config.anonymous,
         "Serve callers that nobody identifies; each request then has its own cache namespace")
      ->group(group);
}

void AddOtherFlags(CLI::App& app, Requests& requests) {
  const auto group = "Configuration";
  app.set_help_flag("-h,--help", "This text")->group(group);
  app.set_version_flag("--version", kVersion)->group(group);
  app.set_config("--config", "", "File of `flag = value` lines; unknown keys are refused")
      ->group(group);
  app.add_flag("--print-config", requests.print_config, "Print every value and where it came from")
      ->group(group)
      ->configurable(false);
  app.add_flag(
         "--check-config", requests.check_config,
         "Check the configuration, and that the model can be loaded with it, and exit; how much "
         "memory is free does not matter")
      ->group(group)
      ->configurable(false);
  app.add_flag("--digest-token", requests.digest_token,
               "Read a bearer token from stdin, print its digest for --tenants and exit")
      ->group(group)
      ->configurable(false);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.footer(
      "Every flag is also an environment variable (PAGODA_MAX_NUM_SEQS=32) and a key of --config.\n"
      "A list is NAME,NAME in the environment and [NAME, NAME] in the file.\n"
      "Order: flag, environment, file, default.");
}

std::vector<CLI::Option*> Settings(CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_configurable(); });
}

std::string NameOf(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : option.get_lnames().front();
}

bool IsOnCommandLine(std::span<const std::string> arguments, const std::string& flag) {
  return std::any_of(arguments.begin(), arguments.end(), [&flag](const std::string& argument) {
    return argument == "--" + flag || argument.starts_with("--" + flag + "=");
  });
}

bool IsList(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

// Variables become arguments, unless a flag says otherwise: so they stand above the file.
absl::StatusOr<std::vector<std::string>> AddEnvironment(CLI::App& app,
                                                        std::span<const std::string> arguments,
                                                        const Environment& environment) {
  std::vector<std::string> all(arguments.begin(), arguments.end());
  Environment unknown = environment;
  for (const CLI::Option* option : Settings(app)) {
    const std::string flag = NameOf(*option);
    const auto found = environment.find(VariableOf(flag));
    if (flag.empty() || found == environment.end()) continue;
    unknown.erase(found->first);
    if (IsOnCommandLine(arguments, flag)) continue;
    const std::string argument = "--" + flag + "=";
    if (!IsList(*option)) {
      all.push_back(argument + found->second);
      continue;
    }
    for (const absl::string_view part : absl::StrSplit(found->second, ',')) {
      all.push_back(absl::StrCat(argument, part));
    }
  }
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("environment variable ", unknown.begin()->first,
                                                   " names no flag; see --help, or unset it"));
  }
  return all;
}

std::string Quoted(const std::string& text) {
  const char* const quote = text.find('"') == std::string::npos ? "\"" : "'";
  return quote + text + quote;
}

std::string ListOf(const std::vector<std::string>& values) {
  return absl::StrCat(
      "[",
      absl::StrJoin(values, ", ",
                    [](std::string* out, const auto& value) { out->append(Quoted(value)); }),
      "]");
}

std::string PrintConfig(CLI::App& app, std::span<const std::string> arguments,
                        const Environment& environment) {
  std::string out;
  for (const CLI::Option* option : Settings(app)) {
    const std::string flag = NameOf(*option);
    if (flag.empty() || flag == "help" || flag == "version" || flag == "config") continue;
    const char* source = "default";
    if (IsOnCommandLine(arguments, flag)) {
      source = "flag";
    } else if (environment.contains(VariableOf(flag))) {
      source = "environment";
    } else if (option->count() > 0) {
      source = "file";
    }
    std::string value = option->get_default_str();
    const std::vector<std::string>& given = option->results();
    if (!given.empty()) value = given.front();
    // An empty value cannot be read back: it is shown, as a comment.
    absl::StrAppend(&out, value.empty() ? "# " : "", flag, " = ",
                    given.size() > 1 ? ListOf(given) : Quoted(value), "  # ", source, "\n");
  }
  return out;
}

// Of a key that it does not know CLI11 says only that it could not read it.
absl::Status ToFileStatus(const CLI::App& app, const CLI::ConfigError& error) {
  absl::string_view what = error.what();
  const bool is_unknown = absl::ConsumePrefix(&what, "INI was not able to parse ");
  return absl::InvalidArgumentError(
      absl::StrCat("--config ", app.get_config_ptr()->as<std::string>(), ": ", what,
                   is_unknown ? " names no flag" : "", "; see --help"));
}

absl::Status ToStatus(const CLI::Error& error) {
  return absl::InvalidArgumentError(absl::StrCat(error.what(), "; see --help"));
}

}  // namespace

Environment ReadEnvironment() {
  Environment found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

void SilenceTransport() { setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0); }

absl::StatusOr<ParsedConfig> ParseConfig(std::span<const std::string> arguments,
                                         const Environment& environment) {
  ParsedConfig parsed;
  Requests requests;
  CLI::App app("Serves one language model over gRPC.", "pagoda-server");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::Throw);
  AddModelFlags(app, parsed.config);
  AddCapacityFlags(app, parsed.config);
  AddServingFlags(app, parsed.config);
  AddSecurityFlags(app, parsed.config);
  AddOtherFlags(app, requests);
  PAGODA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                          AddEnvironment(app, arguments, environment));
  std::reverse(all.begin(), all.end());  // CLI11 takes a vector from its end
  try {
    app.parse(std::move(all));
  } catch (const CLI::CallForHelp&) {
    return ParsedConfig{.config = {}, .print = app.help(), .asks_to_exit = true};
  } catch (const CLI::CallForVersion&) {
    return ParsedConfig{.config = {}, .print = std::string(kVersion) + "\n", .asks_to_exit = true};
  } catch (const CLI::ConfigError& error) {
    return ToFileStatus(app, error);
  } catch (const CLI::Error& error) {
    return ToStatus(error);
  }
  if (requests.digest_token) {
    return ParsedConfig{.config = {}, .print = {}, .asks_to_exit = true, .digest_token = true};
  }
  parsed.checks_config = requests.check_config;
  parsed.asks_to_exit = requests.print_config || requests.check_config;
  if (requests.print_config) parsed.print = PrintConfig(app, arguments, environment);
  if (!requests.print_config || requests.check_config) {
    PAGODA_RETURN_IF_ERROR(CheckConfig(parsed.config));
  }
  if (requests.check_config) parsed.print += "the configuration is valid\n";
  return parsed;
}

}  // namespace pagoda::server
