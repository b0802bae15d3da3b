#include "kernels/emulation/guarded_memory.h"

#include <cstring>

#include "gtest/gtest.h"

namespace pagoda::kernels::emulation {
namespace {

TEST(GuardedMemory, EveryPieceIsWritableToItsLastByteAndApartFromTheNext) {
  const GuardedMemory memory(3, 5000);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto piece = memory.Piece(i);
    ASSERT_EQ(piece.size(), 5000u);
    std::memset(piece.data(), static_cast<int>(i), piece.size());
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(memory.Piece(i).front(), std::byte(i));
    EXPECT_EQ(memory.Piece(i).back(), std::byte(i));
  }
}

TEST(GuardedMemoryDeathTest, AByteAfterAPieceIsAFault) {
  const GuardedMemory memory(2, 5000);
  const auto piece = memory.Piece(0);
  std::byte* const after = piece.data() + piece.size();
  EXPECT_DEATH(std::memset(after, 1, 1), "");
  EXPECT_DEATH(std::memset(memory.Piece(1).data() - 4096, 1, 1), "");
}

}  // namespace
}  // namespace pagoda::kernels::emulation
