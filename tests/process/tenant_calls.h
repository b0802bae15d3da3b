#pragma once

#include <chrono>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/token_digest.h"
#include "tests/process/server_fixture.h"

// Tenants of a whole server: their file, and calls in their names.
namespace pagoda::process {

inline constexpr const char* kAlphaToken = "alpha-token-of-more-than-thirty-two-characters";
inline constexpr const char* kBetaToken = "beta-token-of-more-than-thirty-two-characters";

// A section of the tenants file, with the lines behind its credential.
inline std::string TenantSection(const std::string& name, const std::string& token,
                                 const std::string& lines = {}) {
  return "[" + name + "]\ntoken-digest = " + base::DigestToHex(base::DigestOfToken(token)) + "\n" +
         lines;
}

inline std::string TwoTenants(const std::string& lines = {}) {
  return TenantSection("alpha", kAlphaToken, lines) + TenantSection("beta", kBetaToken, lines);
}

inline std::string TenantsFile(const std::string& content) {
  const std::string path = FreshFile("-tenants.conf");
  std::ofstream(path) << content;
  return path;
}

// One request of the default context, with what a test changes.
struct TenantCall {
  std::string token;
  std::optional<std::string> salt = {};
  std::string client_request_id = {};
  int prompt = 40;
  int max_tokens = 2;
  std::uint32_t kind = 0;  // another prompt for another number
};

inline v1::GenerateRequest RequestOf(const TenantCall& call) {
  v1::GenerateRequest request = TinyRequest(call.prompt, call.max_tokens, call.kind);
  if (call.salt.has_value()) request.mutable_options()->set_cache_salt(*call.salt);
  request.mutable_options()->set_client_request_id(call.client_request_id);
  return request;
}

inline Reply Generate(v1::InferenceService::Stub& stub, const TenantCall& call) {
  ::grpc::ClientContext context;
  if (!call.token.empty()) context.AddMetadata("authorization", "Bearer " + call.token);
  return ReadAll(*stub.Generate(&context, RequestOf(call)));
}

inline std::vector<std::string> TenantFlags(const std::string& file,
                                            const std::vector<std::string>& more = {}) {
  std::vector<std::string> flags = kTinyFlags;
  flags.insert(flags.end(), {"--tenants", file});
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

}  // namespace pagoda::process
