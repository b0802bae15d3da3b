#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/capabilities.h"

namespace pagoda::model {

// What the backend of a device can do, by the device's flag: cpu, emulated-cuda, cuda. Nothing is
// made or taken, so a start can ask before it binds or packs anything. Unimplemented for a device
// that this build cannot drive, InvalidArgument for a name that is none. Any thread.
absl::StatusOr<kernels::Capabilities> CapabilitiesOf(const std::string& device);

}  // namespace pagoda::model
