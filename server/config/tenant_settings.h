#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token_digest.h"

namespace pagoda::server {

// What an operator gives one tenant: a section of the tenants file. Holds digests, never tokens.
struct TenantSettings {
  std::string name;
  std::vector<base::TokenDigest> token_digests;
  std::vector<std::string> certificate_names;  // of client certificates, compared byte by byte
  std::int32_t weight = 1;
  std::int32_t reserve_blocks = 0;
  std::int32_t max_running = 0;          // 0: no limit of its own
  std::int32_t max_queued_requests = 0;  // 0 in the file: an even share, filled in by the check
  std::int64_t max_queued_tokens = 0;    // likewise
  bool isolated = false;
};

// A prefix that the operator registers: computed once, kept, and read by all tenants or those
// named. Not confidential.
struct PublicPrefixSettings {
  std::string name;  // for messages
  bool is_system_message = false;
  std::string path;                  // as the file says it
  std::string text;                  // what is in it, byte for byte
  std::vector<std::string> tenants;  // none: everybody
};

}  // namespace pagoda::server
