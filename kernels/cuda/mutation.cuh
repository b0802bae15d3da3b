#pragma once

// Faults that tests plant in kernels to see that the suite finds them. On a GPU there are none: the
// question is a constant there.

#include <cstdint>

#include "kernels/cuda/primitives.cuh"

namespace pagoda::kernels::cuda {

enum class Mutation : std::uint8_t {
  kNone,
  kGemmNoBarrier,
  kGemmNoBarrierInTheLastStep,
  kGemmWaitsTooLittle,
  kGemmRefillsBeforeTheBarrier,
  kGemmStoresPiecesUnexchanged,
  kGemmReadsPastK,
  kGemmWritesPastN,
  kGemmForgetsToAdd,
  kGemmTakesTheNextStage,
  kGemmSwapsHalves,
  kAttentionNoBarrierBeforeATile,
  kAttentionWaitsTooLittle,
  kAttentionRefillsBeforeTheBarrier,
  kAttentionSeesOneTokenMore,
  kAttentionSeesOneTokenLess,
  kAttentionTakesTheNextBlockTooSoon,
  kAttentionStoresPiecesUnexchanged,
  kAttentionNoFirstShuffle,
  kAttentionNoSecondShuffle,
  kAttentionNoRescaleOfValues,
  kAttentionNoRescaleOfSums,
  kAttentionReadsTheNullBlock,
  kAttentionMergeForgetsTheOld,
  kAttentionMergeSwapsScales,
  kAttentionMergeKeepsTheFirstMaximum,
  kAttentionMergesTheFirstChunk,
  kAttentionOneHeadForAll,
  kAttentionWarpEndsWithItsFirstRow,
  kAttentionSwapsHalvesOfKeys,
  kAttentionValuesNotTransposed,
  kAttentionFirstLayerForAll,
  kDecodeNoSecondShuffle,
  kDecodeNoRescaleOfSums,
  kDecodeNoBarrierBetweenSlices,
  kDecodeNoBarrierAfterMaxima,
  kDecodeNoBarrierAfterWeights,
  kNormLosesHalfTheLanes,
  kNormNoEpsilon,
  kRopeTurnsBackwards,
  kRopeTakesOtherPairs,
  kWriteKvToTheNextToken,
  kZeroBlocksForgetsValues,
  kCopyBlocksTakesWholeBlocks,
  kEmbedOneTokenForAll,
  kAddOneRowForAll,
  kSiluMulSwapsItsFactors,
  kSampleTopKKeepsOneMore,
  kSampleTopPKeepsOneMore,
  kSampleTakesAnothersWord,
  kOutcomeCount,
  // Races whose outcome is the same in every order.
  kAttentionTwoThreadsLoadEachPair = kOutcomeCount,
  kDecodeEveryRowStoresItsSum,
  kCount,
};

inline namespace PAGODA_CUDA_NAMESPACE {

#if defined(__CUDACC__)
PAGODA_DEVICE constexpr bool Mutated(Mutation /*mutation*/) { return false; }
#else
inline bool Mutated(Mutation mutation) {
  return emulation::PlantedFault() == static_cast<std::uint8_t>(mutation);
}
#endif

}  // namespace PAGODA_CUDA_NAMESPACE
}  // namespace pagoda::kernels::cuda
