#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/options.h"

namespace pagoda::client {

// A channel to the server of the options, in plain text or TLS. Nothing is connected yet. Errors:
// NotFound for a file of TLS or of the token that cannot be read, InvalidArgument for one that
// holds no token.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Options& options);

// Gives the call a deadline, if there is one.
void ApplyDeadline(std::optional<double> seconds, grpc::ClientContext& context);

// The whole of a file, or of stdin for "-". Errors: NotFound, with the name.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::istream& standard_input);

}  // namespace pagoda::client
