#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/config/tenant_settings.h"

namespace pagoda::server {

// Everything an operator can set, complete and checked. Field names are the flags' with
// underscores; the help text of config_parser.cc is their documentation.
struct ServerConfig {
  std::string model;
  std::string device = "cpu";
  std::vector<std::string> served_model_name;  // empty: the file's name without its ending
  std::string listen = "127.0.0.1:8470";
  std::string port_file;
  std::string admin_listen;  // empty: no admin service

  std::int32_t max_model_len = 0;  // 0: the model's own
  std::int32_t max_num_seqs = 64;
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t block_size = 16;
  std::string kv_cache_dtype = "auto";
  std::string activation_dtype = "auto";
  std::string kv_cache_memory = "auto";  // auto, or a size
  std::int32_t threads = 0;              // 0: one per core

  std::int32_t max_queued_requests = 1024;
  std::int64_t max_queued_tokens = 4 << 20;
  std::int32_t text_threads = 2;
  double cached_block_ttl_s = 0.0;  // 0: no end
  std::string public_prefixes;      // file; empty: none
  double slow_reader_grace_s = 10.0;
  double step_time_s = 0;  // 0: no request is refused for a deadline that is still to come
  double drain_timeout_s = 30.0;

  std::string tls_cert, tls_key, tls_client_ca;
  bool anonymous = false;
  std::string tenants;  // file; empty: one tenant, and nobody is asked who calls
  std::string max_request_size = "64MiB";
  double min_ping_interval_s = 10.0;
  std::string log_level = "info";
  std::string journal_dir;  // empty: no journal
  std::string journal_memory = "64MiB";

  // Filled by the parser from the texts above.
  std::string host;
  std::uint16_t port = 0;
  std::optional<std::int64_t> kv_cache_bytes;  // none: auto
  std::int64_t max_request_bytes = 0;
  std::int64_t journal_bytes = 0;
  std::vector<TenantSettings> tenant_settings;  // of the file, every bound filled in
  std::vector<PublicPrefixSettings> prefix_settings;
  std::int64_t cached_block_ttl_ms = 0;
};

}  // namespace pagoda::server
