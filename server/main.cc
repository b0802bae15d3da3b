#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/runtime/clock.h"
#include "base/runtime/log.h"
#include "base/runtime/machine_memory.h"
#include "base/status_macros.h"
#include "server/config/check_config.h"
#include "server/config/config_parser.h"
#include "server/config/digest_token.h"
#include "server/core/front_desk.h"
#include "server/core/operations.h"
#include "server/core/refusal.h"
#include "server/grpc/admin_server.h"
#include "server/grpc/grpc_server.h"
#include "server/server_stack.h"
#include "server/shutdown_signals.h"
#include "server/tenant_wiring.h"

namespace pagoda::server {
namespace {

constexpr int kExitUsage = 2;
constexpr std::int64_t kCallsGraceMillis = 5'000;  // for last messages of calls that have ended
constexpr double kMillisPerSecond = 1e3;

base::LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return base::LogLevel::kDebug;
  if (name == "warning") return base::LogLevel::kWarning;
  if (name == "error") return base::LogLevel::kError;
  return base::LogLevel::kInfo;
}

GrpcServerOptions DoorOptions(const ServerConfig& config) {
  GrpcServerOptions options;
  options.listen = config.listen;
  options.tls = {config.tls_cert, config.tls_key, config.tls_client_ca};
  options.max_request_bytes = static_cast<std::int32_t>(config.max_request_bytes);
  options.min_ping_interval_ms =
      static_cast<std::int64_t>(config.min_ping_interval_s * kMillisPerSecond);
  return options;
}

// Whole or not at all: a reader that sees the file can use it.
absl::Status WritePortFile(const std::string& path, int port) {
  if (path.empty()) return absl::OkStatus();
  const std::string unfinished = path + ".new";
  std::ofstream(unfinished) << port << "\n";
  std::error_code error;
  std::filesystem::rename(unfinished, path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("--port-file ", path, " cannot be written: ", error.message()));
}

absl::StatusOr<std::unique_ptr<AdminServer>> StartAdmin(const ServerConfig& config,
                                                        const FrontDesk& desk,
                                                        const Operations& operations) {
  if (config.admin_listen.empty()) return nullptr;
  PAGODA_ASSIGN_OR_RETURN(auto admin, AdminServer::Start(config.admin_listen, desk, operations));
  base::LogInfo(absl::StrCat("admin service on port ", admin->port()));
  return admin;
}

// Loads and starts, unless a signal comes first: then what has been made so far goes again.
absl::StatusOr<std::unique_ptr<ServerStack>> StartStack(const ServerConfig& config, FrontDesk& desk,
                                                        const base::ClockSource& clock,
                                                        const ShutdownSignals& signals) {
  const auto asked = [&signals] { return signals.asked(); };
  PAGODA_ASSIGN_OR_RETURN(auto stack, ServerStack::Load(config, desk, clock, asked));
  PAGODA_RETURN_IF_ERROR(stack->Start());
  return stack;
}

// What an operator should know about who can call, and nothing that a caller could use.
void LogExposure(const ServerConfig& config) {
  if (config.anonymous) {
    base::LogWarning(
        "anonymous: anyone who reaches this port is served; no request shares cached blocks");
  }
  bool has_tokens = false;
  for (const TenantSettings& tenant : config.tenant_settings) {
    has_tokens = has_tokens || !tenant.token_digests.empty();
    base::LogInfo(absl::StrCat(
        "tenant ", tenant.name, ": ", tenant.token_digests.size(), " tokens, ",
        tenant.certificate_names.size(), " certificate names, weight ", tenant.weight, ", reserve ",
        tenant.reserve_blocks, " blocks", tenant.isolated ? ", isolated" : ""));
  }
  if (has_tokens && config.tls_cert.empty() && !IsLoopback(config.host)) {
    base::LogWarning(
        "tokens come in plain text over a port that others reach; give --tls-cert and --tls-key, "
        "or put something in front that speaks TLS");
  }
}

// On the operators' thread, from SIGHUP and from the admin service alike.
absl::StatusOr<ReloadReport> Reload(ServerStack* stack, Authenticator& authenticator) {
  if (stack == nullptr) return Unavailable(reason::kLoading, "the model is being loaded");
  absl::StatusOr<ReloadReport> report = stack->ReloadTenants(authenticator);
  if (report.ok()) {
    base::LogInfo(absl::StrCat("reload: ", report->summary));
  } else {
    base::LogError(absl::StrCat("reload: nothing has changed: ", report.status().message()));
  }
  return report;
}

absl::Status Serve(const ServerConfig& config, ShutdownSignals& signals) {
  const base::ClockSource& clock = base::SystemClock();
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t available, base::AvailableMemory());
  PAGODA_RETURN_IF_ERROR(ServerStack::CheckStart(config, available));
  const std::unique_ptr<Authenticator> authenticator = MakeAuthenticator(config);
  FrontDesk desk(*authenticator);
  PAGODA_ASSIGN_OR_RETURN(const auto door, GrpcServer::Start(DoorOptions(config), desk, clock));
  PAGODA_RETURN_IF_ERROR(WritePortFile(config.port_file, door->port()));
  base::LogInfo(
      absl::StrCat("listening on ", config.host, ":", door->port(), ", loading ", config.model));
  std::unique_ptr<ServerStack> stack;
  std::atomic<ServerStack*> serving = nullptr;
  // Goes after the admin server, whose commands it carries out, and before the stack.
  OperatorDesk operators([&desk] {
    Pipeline* pipeline = desk.installed();
    return pipeline == nullptr || pipeline->SettleTenants();
  });
  const auto reload = [&] { return Reload(serving.load(), *authenticator); };
  const auto dump_journal = [&]() -> absl::StatusOr<JournalReport> {
    ServerStack* const loaded = serving.load();
    if (loaded == nullptr) return Unavailable(reason::kLoading, "the model is being loaded");
    return loaded->DumpJournal();
  };
  const Operations operations = {
      .desk = &operators, .reload = reload, .dump_journal = dump_journal, .drain = [&signals] {
        signals.Ask();
      }};
  PAGODA_ASSIGN_OR_RETURN(const auto admin, StartAdmin(config, desk, operations));
  absl::StatusOr<std::unique_ptr<ServerStack>> started = StartStack(config, desk, clock, signals);
  if (!started.ok() && !absl::IsCancelled(started.status())) return started.status();
  if (started.ok()) {
    stack = *std::move(started);
    serving.store(stack.get());
    base::LogInfo(absl::StrCat("serving ", config.served_model_name.front(), " on ", config.host,
                               ":", door->port()));
    LogExposure(config);
    while (signals.Wait() == ShutdownSignals::Event::kReload) {
      if (!operators.TryPost([&reload] { static_cast<void>(reload()); })) {
        base::LogWarning("SIGHUP: other commands wait already; send it again");
      }
    }
  }
  desk.lifecycle().MoveTo(ServerState::kDraining);
  base::LogInfo("draining");
  if (stack) {
    stack->Drain(clock.Now().PlusMillis(
        static_cast<std::int64_t>(config.drain_timeout_s * kMillisPerSecond)));
  }
  door->Shutdown(kCallsGraceMillis);
  desk.lifecycle().MoveTo(ServerState::kStopped);
  base::LogInfo("stopped");
  return absl::OkStatus();
}

// Big things are asked for before they are taken; this is for what the system refuses beyond that,
// to us or to a library, under limits that nobody tells of.
absl::Status ServeWithWhatIsThere(const ServerConfig& config, ShutdownSignals& signals) {
  try {
    return Serve(config, signals);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "the system gave no more memory at the start; raise the limit of this process (ulimit -v, "
        "a "
        "container's memory) or lower --kv-cache-memory, --max-num-seqs or --max-queued-requests");
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system refused a thread or another resource at the start: ", error.what(),
                     "; raise the limit of processes (ulimit -u, a container's pids limit) or "
                     "lower --threads and "
                     "--text-threads"));
  }
}

int DigestToken() {
  const absl::StatusOr<std::string> digest = DigestTokenFrom(std::cin);
  if (!digest.ok()) {
    std::cerr << "pagoda-server: " << digest.status().message() << "\n";
    return kExitUsage;
  }
  std::cout << *digest << "\n";
  return 0;
}

// That a start would take the model, on a machine with memory enough: what is free now may be less
// than at the start that is being prepared.
absl::Status CheckModel(const ServerConfig& config) {
  constexpr std::int64_t kEnough = std::int64_t{1} << 52;
  PAGODA_RETURN_IF_ERROR(ServerStack::CheckStart(config, kEnough));
  return ServerStack::CheckContent(config);
}

int Run(const std::vector<std::string>& arguments) {
  SilenceTransport();
  const absl::StatusOr<ParsedConfig> parsed = ParseConfig(arguments, ReadEnvironment());
  if (!parsed.ok()) {
    std::cerr << "pagoda-server: " << parsed.status().message() << "\n";
    return kExitUsage;
  }
  if (parsed->digest_token) return DigestToken();
  if (parsed->checks_config) {
    if (const absl::Status status = CheckModel(parsed->config); !status.ok()) {
      std::cerr << "pagoda-server: " << status.message() << "\n";
      return 1;
    }
  }
  if (parsed->asks_to_exit) {
    std::cout << parsed->print;
    return 0;
  }
  base::SetLogLevel(LevelOf(parsed->config.log_level));
  ShutdownSignals signals;
  const absl::Status status = ServeWithWhatIsThere(parsed->config, signals);
  if (status.ok()) return 0;
  base::LogError(std::string(status.message()));
  return 1;
}

}  // namespace
}  // namespace pagoda::server

int main(int argc, char** argv) {
  return pagoda::server::Run(std::vector<std::string>(argv + 1, argv + argc));
}
