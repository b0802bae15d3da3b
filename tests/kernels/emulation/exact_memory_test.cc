#include "kernels/emulation/exact_memory.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/emulation/stack_sanitizer.h"

namespace pagoda::kernels::emulation {
namespace {

constexpr std::size_t kSizes[] = {1, 12, 255, 256, 4096, 5000};

TEST(ExactMemory, IsAlignedWritableToItsLastByteAndBeginsAsNansInTestBuilds) {
  for (const std::size_t size : kSizes) {
    const auto memory = ExactMemory::Map(size);
    ASSERT_TRUE(memory.has_value());
    const auto bytes = memory->bytes();
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % ExactMemory::kAlignment, 0u);
#if defined(PAGODA_TEST_CHECKS)
    EXPECT_EQ(bytes.front(), std::byte{0xff});
    EXPECT_EQ(bytes.back(), std::byte{0xff});
#endif
    std::memset(bytes.data(), 1, size);
    EXPECT_FALSE(memory->IsOverrun());
  }
}

// Without a sanitizer a byte too many is a NaN to a reader, and is told of a writer.
TEST(ExactMemoryDeathTest, OneByteTooManyIsFound) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{12}, std::size_t{5000}}) {
    const auto memory = ExactMemory::Map(size);
    ASSERT_TRUE(memory.has_value());
    std::byte* const past = memory->bytes().data() + size;
    if (kForbids) {
      EXPECT_DEATH(*past = std::byte{1}, "use-after-poison");
      continue;
    }
    float read = 0;
    std::memcpy(&read, past + size % 2, sizeof(read));
    EXPECT_TRUE(std::isnan(read)) << size;
    *past = std::byte{1};
    EXPECT_TRUE(memory->IsOverrun());
  }
}

TEST(ExactMemoryDeathTest, WhatLiesBeforeItOrBeyondItsAlignmentIsAFault) {
  for (const std::size_t size : kSizes) {
    const auto memory = ExactMemory::Map(size);
    ASSERT_TRUE(memory.has_value());
    std::byte* const end = memory->bytes().data() + (size + 255) / 256 * 256;
    EXPECT_DEATH(*end = std::byte{1}, "");
    EXPECT_DEATH(*(memory->bytes().data() - 4096) = std::byte{1}, "");
  }
}

TEST(ExactMemory, MoreThanThereIsIsRefused) {
  EXPECT_FALSE(ExactMemory::Map(std::size_t{1} << 60).has_value());
}

}  // namespace
}  // namespace pagoda::kernels::emulation
