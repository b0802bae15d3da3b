#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/runtime/clock.h"
#include "base/runtime/log.h"
#include "base/status_macros.h"
#include "server/config/config_parser.h"
#include "server/core/front_desk.h"
#include "server/grpc/admin_server.h"
#include "server/grpc/grpc_server.h"
#include "server/server_stack.h"
#include "server/shutdown_signals.h"

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
                                                        const FrontDesk& desk) {
  if (config.admin_listen.empty()) return nullptr;
  PAGODA_ASSIGN_OR_RETURN(auto admin, AdminServer::Start(config.admin_listen, desk));
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

absl::Status Serve(const ServerConfig& config, ShutdownSignals& signals) {
  const base::ClockSource& clock = base::SystemClock();
  FrontDesk desk;
  PAGODA_ASSIGN_OR_RETURN(const auto door, GrpcServer::Start(DoorOptions(config), desk, clock));
  PAGODA_RETURN_IF_ERROR(WritePortFile(config.port_file, door->port()));
  base::LogInfo(
      absl::StrCat("listening on ", config.host, ":", door->port(), ", loading ", config.model));
  std::unique_ptr<ServerStack> stack;
  PAGODA_ASSIGN_OR_RETURN(const auto admin, StartAdmin(config, desk));  // goes before the stack
  absl::StatusOr<std::unique_ptr<ServerStack>> started = StartStack(config, desk, clock, signals);
  if (!started.ok() && !absl::IsCancelled(started.status())) return started.status();
  if (started.ok()) {
    stack = *std::move(started);
    base::LogInfo(absl::StrCat("serving ", config.served_model_name.front(), " on ", config.host,
                               ":", door->port()));
    if (config.anonymous) {
      base::LogWarning(
          "anonymous: anyone who reaches this port is served; no request shares cached blocks");
    }
    signals.Wait();
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

int Run(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ParsedConfig> parsed = ParseConfig(arguments, ReadEnvironment());
  if (!parsed.ok()) {
    std::cerr << "pagoda-server: " << parsed.status().message() << "\n";
    return kExitUsage;
  }
  if (parsed->asks_to_exit) {
    std::cout << parsed->print;
    return 0;
  }
  base::SetLogLevel(LevelOf(parsed->config.log_level));
  ShutdownSignals signals;
  const absl::Status status = Serve(parsed->config, signals);
  if (status.ok()) return 0;
  base::LogError(std::string(status.message()));
  return 1;
}

}  // namespace
}  // namespace pagoda::server

int main(int argc, char** argv) {
  return pagoda::server::Run(std::vector<std::string>(argv + 1, argv + argc));
}
