#include "client/connection.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/caller_token.h"

namespace pagoda::client {
namespace {

// A reply is one message per step, but a long prompt's tokens come back in one.
constexpr int kMaxReceiveBytes = 64 << 20;
// Between attempts. The library's "minimum" is another thing, how long one attempt may take: left
// as it is, for a server that is far away or busy.
constexpr int kFirstReconnectMs = 100;
constexpr int kLastReconnectMs = 1000;

absl::StatusOr<std::string> ReadIfNamed(const std::string& path) {
  if (path.empty()) return std::string();
  std::istringstream none;
  return ReadWholeFile(path, none);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const Options& options) {
  if (options.tls_ca.empty() && options.tls_cert.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  PAGODA_ASSIGN_OR_RETURN(tls.pem_root_certs, ReadIfNamed(options.tls_ca));
  PAGODA_ASSIGN_OR_RETURN(tls.pem_cert_chain, ReadIfNamed(options.tls_cert));
  PAGODA_ASSIGN_OR_RETURN(tls.pem_private_key, ReadIfNamed(options.tls_key));
  return grpc::SslCredentials(tls);
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::istream& standard_input) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat("the file '", path, "' cannot be read"));
  }
  std::istream& input = path == "-" ? standard_input : file;
  // By stream, which turns the library's exception (a directory, say) into a bad state.
  std::ostringstream content;
  if (input.peek() != std::istream::traits_type::eof()) content << input.rdbuf();
  if (input.bad() || content.bad()) {
    return absl::NotFoundError(absl::StrCat("the file '", path, "' cannot be read"));
  }
  return std::move(content).str();
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Options& options) {
  PAGODA_ASSIGN_OR_RETURN(const auto credentials, Credentials(options));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  PAGODA_ASSIGN_OR_RETURN(InterceptorFactories caller, CallerToken(options.token_file));
  return grpc::experimental::CreateCustomChannelWithInterceptors(options.server, credentials,
                                                                 arguments, std::move(caller));
}

void ApplyDeadline(std::optional<double> seconds, grpc::ClientContext& context) {
  if (!seconds.has_value()) return;
  constexpr double kLongestSeconds = 1e9;
  const auto microseconds = static_cast<std::int64_t>(1e6 * std::min(*seconds, kLongestSeconds));
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(microseconds));
}

}  // namespace pagoda::client
