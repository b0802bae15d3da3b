#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace pagoda::formats {

// What lies where a model's file was expected, when that can be told by its first bytes, and what
// to do: the end of an error's sentence, "; it is ...". Empty: it cannot be told. Pure.
std::string AdviceOnForeign(std::span<const std::byte> bytes);

}  // namespace pagoda::formats
