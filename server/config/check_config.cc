#include "server/config/check_config.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/config/prefixes_file.h"
#include "server/config/tenants_file.h"

namespace pagoda::server {
namespace {

absl::Status Refuse(std::string_view what) {
  return absl::InvalidArgumentError(base::ToAbsl(what));
}

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// "HOST:PORT", "[V6]:PORT".
absl::StatusOr<Address> Split(const std::string& flag, const std::string& value) {
  const std::string_view listen = value;
  const std::size_t colon = listen.find_last_of(':');
  std::string_view host = listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view() : listen.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || digits.empty() || error != std::errc() ||
      end != digits.data() + digits.size()) {
    return Refuse(absl::StrCat(
        flag, " is '", value,
        "'; write HOST:PORT, as 127.0.0.1:8470, with a port from 0 (any free one) to 65535"));
  }
  return Address{std::string(host), port};
}

absl::Status CheckListen(ServerConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const Address door, Split("--listen", config.listen));
  config.host = door.host;
  config.port = door.port;
  if (config.admin_listen.empty()) return absl::OkStatus();
  PAGODA_ASSIGN_OR_RETURN(const Address admin, Split("--admin-listen", config.admin_listen));
  if (IsLoopback(admin.host)) return absl::OkStatus();
  return Refuse(absl::StrCat("--admin-listen ", config.admin_listen,
                             " is reachable from other machines and nothing asks who calls; listen "
                             "on 127.0.0.1"));
}

absl::Status CheckFile(std::string_view flag, const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::exists(path, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("--", base::ToAbsl(flag), " names ", path,
                                          ", which does not exist; give an existing file"));
}

absl::Status CheckTls(const ServerConfig& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return Refuse("--tls-cert and --tls-key belong together; give both or neither");
  }
  if (!config.tls_client_ca.empty() && config.tls_cert.empty()) {
    return Refuse("--tls-client-ca needs --tls-cert and --tls-key");
  }
  PAGODA_RETURN_IF_ERROR(CheckFile("tls-cert", config.tls_cert));
  PAGODA_RETURN_IF_ERROR(CheckFile("tls-key", config.tls_key));
  return CheckFile("tls-client-ca", config.tls_client_ca);
}

absl::Status CheckTenants(ServerConfig& config) {
  if (config.tenants.empty()) return absl::OkStatus();
  if (config.anonymous) {
    return Refuse(absl::StrCat("--tenants ", config.tenants,
                               " asks every caller who it is and --anonymous asks nobody; give one "
                               "of them"));
  }
  PAGODA_ASSIGN_OR_RETURN(config.tenant_settings, LoadTenants(config));
  return absl::OkStatus();
}

absl::Status CheckJournal(ServerConfig& config) {
  const auto bytes = base::ParseByteSize(config.journal_memory);
  if (!bytes.ok()) return Refuse(absl::StrCat("--journal-memory: ", bytes.status().message()));
  constexpr std::int64_t kLeast = 1 << 20;
  constexpr std::int64_t kMost = std::int64_t{1} << 36;
  if (*bytes < kLeast || *bytes > kMost) {
    return Refuse(
        absl::StrCat("--journal-memory is ", config.journal_memory, "; allowed is 1MiB to 64GiB"));
  }
  if (config.journal_dir.empty()) return absl::OkStatus();
  config.journal_bytes = *bytes;
  std::error_code error;
  if (std::filesystem::is_directory(config.journal_dir, error) &&
      access(config.journal_dir.c_str(), W_OK) == 0) {
    return absl::OkStatus();
  }
  return Refuse(absl::StrCat("--journal-dir ", config.journal_dir,
                             " is no folder that can be written to; make one, or leave it out"));
}

absl::Status CheckCache(ServerConfig& config) {
  constexpr double kMillisPerSecond = 1e3;
  config.cached_block_ttl_ms =
      static_cast<std::int64_t>(config.cached_block_ttl_s * kMillisPerSecond);
  if (config.cached_block_ttl_s > 0.0 && config.cached_block_ttl_ms == 0) {
    return Refuse(absl::StrCat("--cached-block-ttl is ", config.cached_block_ttl_s,
                               " seconds; allowed is 0 (no end) and 0.001 to 31536000"));
  }
  if (config.public_prefixes.empty()) return absl::OkStatus();
  PAGODA_ASSIGN_OR_RETURN(config.prefix_settings, LoadPrefixes(config));
  return absl::OkStatus();
}

absl::Status CheckExposure(const ServerConfig& config) {
  if (IsLoopback(config.host) || config.anonymous || !config.tls_client_ca.empty() ||
      !config.tenants.empty()) {
    return absl::OkStatus();
  }
  return Refuse(absl::StrCat(
      "--listen ", config.listen,
      " is reachable from other machines and nothing asks who calls; listen on 127.0.0.1, or name "
      "tenants and their credentials (--tenants), or require client certificates "
      "(--tls-client-ca), or say --anonymous"));
}

absl::Status CheckSizes(ServerConfig& config) {
  if (config.kv_cache_memory != "auto") {
    const auto bytes = base::ParseByteSize(config.kv_cache_memory);
    if (!bytes.ok()) {
      return Refuse(absl::StrCat("--kv-cache-memory: ", bytes.status().message(), ", or auto"));
    }
    config.kv_cache_bytes = *bytes;
  }
  const auto request = base::ParseByteSize(config.max_request_size);
  if (!request.ok())
    return Refuse(absl::StrCat("--max-request-size: ", request.status().message()));
  constexpr std::int64_t kLeast = 1 << 10;
  constexpr std::int64_t kMost = 1 << 30;
  if (*request < kLeast || *request > kMost) {
    return Refuse(absl::StrCat("--max-request-size is ", config.max_request_size,
                               "; allowed is 1KiB to 1GiB"));
  }
  config.max_request_bytes = *request;
  if ((config.block_size & (config.block_size - 1)) != 0) {
    return Refuse(
        absl::StrCat("--block-size is ", config.block_size, "; choose 4, 8, 16, 32 or 64"));
  }
  if (config.max_num_batched_tokens < config.block_size + config.max_num_seqs) {
    return Refuse(absl::StrCat(
        "--max-num-batched-tokens is ", config.max_num_batched_tokens, ", but one block (",
        config.block_size, ") beside one token of every sequence (", config.max_num_seqs,
        ") must fit; raise it to at least ", config.block_size + config.max_num_seqs));
  }
  return absl::OkStatus();
}

// A file's name without its ending; a folder's whole name, which may hold a dot.
std::string NameOf(const std::string& model) {
  std::error_code error;
  if (!std::filesystem::is_directory(model, error)) {
    return std::filesystem::path(model).stem().string();
  }
  std::filesystem::path folder = std::filesystem::absolute(model).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string();
}

}  // namespace

bool IsLoopback(std::string_view host) {
  // A name may begin like an address and lead anywhere.
  const bool is_address = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (is_address && host.starts_with("127."));
}

absl::Status CheckConfig(ServerConfig& config) {
  if (config.model.empty()) return Refuse("--model is missing; give a GGUF file or a model folder");
  PAGODA_RETURN_IF_ERROR(CheckFile("model", config.model));
  PAGODA_RETURN_IF_ERROR(CheckListen(config));
  PAGODA_RETURN_IF_ERROR(CheckTls(config));
  PAGODA_RETURN_IF_ERROR(CheckExposure(config));
  PAGODA_RETURN_IF_ERROR(CheckSizes(config));
  PAGODA_RETURN_IF_ERROR(CheckTenants(config));
  PAGODA_RETURN_IF_ERROR(CheckCache(config));
  PAGODA_RETURN_IF_ERROR(CheckJournal(config));
  if (config.served_model_name.empty()) {
    config.served_model_name.push_back(NameOf(config.model));
  }
  return absl::OkStatus();
}

}  // namespace pagoda::server
