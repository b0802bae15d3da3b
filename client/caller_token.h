#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pagoda::client {

using InterceptorFactories =
    std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

// What says with every call of a channel who makes it: `authorization: Bearer TOKEN`, with the
// token of a file (one line). By interceptor, because gRPC's own credentials for calls want TLS,
// and a server on loopback may have none. Errors: NotFound for a file that cannot be read,
// InvalidArgument for one that holds no token.
absl::StatusOr<InterceptorFactories> CallerToken(const std::string& token_file);

}  // namespace pagoda::client
