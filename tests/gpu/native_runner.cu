// The checks on a real GPU, then three speeds, each line written as it is known. Needs nvcc, a
// driver and the C++ standard library; built by scripts/gpu-check.
//   native_runner RESULTS.txt COMMIT
#include <cuda_runtime.h>

#include <cstdio>
#include <string>
#include <vector>

#include "kernels/cuda/kernel_table.h"
#include "tests/gpu/conformance_checks.cuh"

namespace pagoda::gpu_check {
namespace {

std::string ErrorText(cudaError_t error) {
  if (error == cudaSuccess) return "";
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

class NativeMachine {
 public:
  NativeMachine() = default;
  NativeMachine(const NativeMachine&) = delete;
  ~NativeMachine() {
    for (void* const memory : memory_) cudaFree(memory);
  }

  // Both sides see it; freed with the machine.
  template <typename T>
  T* Allocate(std::size_t count) {
    void* memory = nullptr;
    const cudaError_t error = cudaMallocManaged(&memory, count * sizeof(T));
    if (error != cudaSuccess) {
      std::fprintf(stderr, "gpu-check: %zu bytes: %s\n", count * sizeof(T),
                   ErrorText(error).c_str());
      std::exit(1);
    }
    memory_.push_back(memory);
    cudaMemset(memory, 0, count * sizeof(T));
    cudaDeviceSynchronize();
    return static_cast<T*>(memory);
  }

  template <auto kKernel, typename Arguments>
  std::string Launch(Grid grid, int threads, int shared_bytes, const Arguments& arguments) {
    Enqueue<kKernel>(grid, threads, shared_bytes, arguments);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      return ErrorText(error);
    }
    return ErrorText(cudaDeviceSynchronize());
  }

  template <auto kKernel, typename Arguments>
  void Enqueue(Grid grid, int threads, int shared_bytes, const Arguments& arguments) {
    const void* const kernel = reinterpret_cast<const void*>(kKernel);
    // Above 48 KB only for who asks.
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    Arguments copy = arguments;
    void* pointers[] = {&copy};
    cudaLaunchKernel(kernel, dim3(grid.x, grid.y, grid.z), dim3(static_cast<unsigned>(threads)),
                     pointers, static_cast<std::size_t>(shared_bytes), nullptr);
  }

 private:
  std::vector<void*> memory_;
};

// Seconds of one call of `work`, of many in a row after some to warm up.
template <typename Work>
double SecondsOf(int calls, const Work& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < 3; ++i) work();
  cudaEventRecord(begin);
  for (int i = 0; i < calls; ++i) work();
  cudaEventRecord(end);
  cudaEventSynchronize(end);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds * 1e-3 / calls;
}

class Results {
 public:
  explicit Results(const char* path) : file_(std::fopen(path, "w")) {}
  Results(const Results&) = delete;
  ~Results() {
    if (file_ != nullptr) std::fclose(file_);
  }
  void Line(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
    if (file_ == nullptr) return;
    std::fprintf(file_, "%s\n", text.c_str());
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
};

// Bytes read and written a second by the device's own copy: the limit for decode.
void ProbeCopies(Results& results) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  void* from = nullptr;
  void* to = nullptr;
  if (cudaMalloc(&from, kBytes) != cudaSuccess || cudaMalloc(&to, kBytes) != cudaSuccess) {
    results.Line("copy bandwidth: no memory for two buffers of 1 GiB");
  } else {
    const double seconds =
        SecondsOf(10, [&] { cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice); });
    results.Line("copy bandwidth: " + std::to_string(2.0 * kBytes / seconds * 1e-9) + " GB/s");
  }
  cudaFree(from);
  cudaFree(to);
}

void ProbeGemm(NativeMachine& machine, Results& results) {
  constexpr int kRows = 2048, kOutputs = 4096, kInputs = 4096;
  cuda::GemmArguments arguments;
  arguments.x = machine.Allocate<std::uint16_t>(std::size_t{kRows} * kInputs);
  arguments.w = machine.Allocate<std::uint16_t>(std::size_t{kOutputs} * kInputs);
  arguments.out = {machine.Allocate<float>(std::size_t{kRows} * kOutputs), kOutputs};
  arguments.x_stride = kInputs;
  arguments.rows = kRows;
  arguments.outputs = kOutputs;
  arguments.inputs = kInputs;
  const double seconds = SecondsOf(10, [&] {
    machine.Enqueue<&cuda::GemmManyRows>({kOutputs / 64, kRows / 64}, cuda::GemmShape::kThreads,
                                         cuda::kGemmManyRows.SharedBytes(), arguments);
  });
  const double operations = 2.0 * kRows * kOutputs * kInputs;
  results.Line("own matrix product, 2048 x 4096 x 4096: " +
               std::to_string(operations / seconds * 1e-12) + " TFLOP/s");
}

// 64 sequences of 4,096 tokens, 8 KV heads of 128 shared by 4 heads each.
void ProbeDecode(NativeMachine& machine, Results& results) {
  constexpr int kSequences = 64, kLength = 4096, kKvHeads = 8, kGroup = 4, kSize = 128;
  constexpr int kBlocks = kLength / 16, kSlices = kLength / cuda::kChunkTokens;
  constexpr std::int64_t kPlane = std::int64_t{kKvHeads} * 16 * kSize * 2;
  constexpr std::int64_t kPoolBytes = 2 * kPlane * kBlocks * kSequences;
  auto* const pool = machine.Allocate<unsigned char>(static_cast<std::size_t>(kPoolBytes));
  cuda::DecodeArguments arguments;
  arguments.query = {machine.Allocate<float>(std::size_t{kSequences} * kKvHeads * kGroup * kSize),
                     kKvHeads * kGroup * kSize};
  arguments.kv.key = {pool, 2 * kPlane, 0, 16 * kSize * 2, kSize * 2};
  arguments.kv.value = arguments.kv.key;
  arguments.kv.value.base += kPlane;
  arguments.kv.block_shift = 4;
  auto* const shares = machine.Allocate<cuda::DecodeShare>(kSequences * kSlices);
  auto* const slices = machine.Allocate<cuda::DecodeSlice>(kSequences * kSlices);
  auto* const table = machine.Allocate<std::uint32_t>(std::size_t{kSequences} * kBlocks);
  for (int i = 0; i < kSequences * kSlices; ++i) {
    const int sequence = i / kSlices;
    const int first = i % kSlices * cuda::kChunkTokens;
    slices[i] = {sequence, sequence * kBlocks, first, first + cuda::kChunkTokens};
    shares[i] = {i, 1};
  }
  for (int i = 0; i < kSequences * kBlocks; ++i) table[i] = static_cast<std::uint32_t>(i);
  arguments.shares = shares;
  arguments.slices = slices;
  arguments.block_table = table;
  const std::size_t sums = std::size_t{kSequences} * kSlices * kKvHeads * kGroup;
  arguments.partial_out = machine.Allocate<float>(sums * kSize);
  arguments.partial_sums = machine.Allocate<float>(sums * 2);
  arguments.group = kGroup;
  arguments.num_query_heads = kKvHeads * kGroup;
  arguments.scale = 0.088f;
  constexpr cuda::DecodeShape kShape = cuda::DecodeShapeOf(kSize, cuda::kDecodeHeads);
  const double seconds = SecondsOf(10, [&] {
    machine.Enqueue<&cuda::Decode<kSize, cuda::kDecodeHeads>>({kSequences * kSlices, kKvHeads},
                                                              cuda::DecodeShape::kThreads,
                                                              kShape.SharedBytes(), arguments);
  });
  results.Line("decode attention, 64 contexts of 4096: " +
               std::to_string(static_cast<double>(kPoolBytes) / seconds * 1e-9) +
               " GB/s of K and V");
}

// Chains of matrix products as this GPU computed them, for a model of them to be held against:
// RESULTS.txt.mma, after a line that says where they come from.
void WriteVectors(const std::string& path, const std::string& source, const Outcome& outcome) {
  if (outcome.vectors.empty()) return;
  std::FILE* const file = std::fopen((path + ".mma").c_str(), "w");
  if (file == nullptr) return;
  std::fprintf(file,
               "# %s; per line a [6][16][16] and b [6][8][16] in bf16, c and out [16][8] in fp32\n",
               source.c_str());
  for (const std::string& line : outcome.vectors) std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

int Main(const std::string& path, const std::string& commit) {
  Results results(path.c_str());
  int version = 0;
  cudaDriverGetVersion(&version);
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, 0); error != cudaSuccess) {
    results.Line("no GPU: " + ErrorText(error) + "; CUDA driver " + std::to_string(version));
    return 1;
  }
  const std::string source =
      std::string(properties.name) + ", sm_" + std::to_string(properties.major) +
      std::to_string(properties.minor) + ", " + std::to_string(properties.multiProcessorCount) +
      " multiprocessors, CUDA driver " + std::to_string(version) + ", commit " + commit;
  results.Line(source);
  NativeMachine machine;
  bool passed = true;
  RunChecks(machine, [&](const Outcome& outcome) {
    passed = passed && outcome.passed;
    results.Line((outcome.passed ? "passed: " : "FAILED: ") + outcome.name + " (" + outcome.detail +
                 ")");
    WriteVectors(path, source, outcome);
  });
  ProbeCopies(results);
  ProbeGemm(machine, results);
  ProbeDecode(machine, results);
  results.Line(passed ? "all checks passed" : "some checks FAILED");
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace pagoda::gpu_check

int main(int count, char** arguments) {
  return pagoda::gpu_check::Main(count > 1 ? arguments[1] : "gpu-check.txt",
                                 count > 2 ? arguments[2] : "unknown");
}
