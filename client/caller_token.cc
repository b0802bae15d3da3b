#include "client/caller_token.h"

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/connection.h"

namespace pagoda::client {
namespace {

namespace intercept = grpc::experimental;

class TokenInterceptor final : public intercept::Interceptor {
 public:
  explicit TokenInterceptor(const std::string& value) : value_(value) {}
  void Intercept(intercept::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            intercept::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", value_);
    }
    methods->Proceed();
  }

 private:
  const std::string& value_;
};

class TokenFactory final : public intercept::ClientInterceptorFactoryInterface {
 public:
  explicit TokenFactory(std::string value) : value_(std::move(value)) {}
  intercept::Interceptor* CreateClientInterceptor(intercept::ClientRpcInfo* /*call*/) override {
    return std::make_unique<TokenInterceptor>(value_).release();  // the library's from here on
  }

 private:
  const std::string value_;
};

}  // namespace

absl::StatusOr<InterceptorFactories> CallerToken(const std::string& token_file) {
  InterceptorFactories factories;
  if (token_file.empty()) return factories;
  std::istringstream none;
  PAGODA_ASSIGN_OR_RETURN(std::string token, ReadWholeFile(token_file, none));
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  if (token.empty() || token.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token-file ", token_file, ": is no token on a single line"));
  }
  factories.push_back(std::make_unique<TokenFactory>("Bearer " + token));
  return factories;
}

}  // namespace pagoda::client
