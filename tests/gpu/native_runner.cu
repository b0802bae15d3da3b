// The checks on a real GPU, then four speeds, each line written as it is known. Needs nvcc, a
// driver and the C++ standard library; built by scripts/gpu-check.
//   native_runner RESULTS.txt COMMIT      ends with 0 if all checks passed, 3 without a GPU, else 1
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/kernel_table.h"
#include "tests/gpu/conformance_checks.cuh"

namespace pagoda::gpu_check {
namespace {

constexpr int kExitWithoutGpu = 3;

std::string ErrorText(cudaError_t error) {
  if (error == cudaSuccess) return "";
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
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

// What the GPU cannot be asked any more ends the run, with a line that says so.
[[noreturn]] void Stop(Results& results, const std::string& what, cudaError_t error) {
  results.Line("FAILED: " + what + ": " + ErrorText(error) + "; nothing after this was run");
  std::exit(1);
}

class NativeMachine {
 public:
  explicit NativeMachine(Results& results) : results_(results) {}
  NativeMachine(const NativeMachine&) = delete;
  ~NativeMachine() {
    for (void* const memory : memory_) cudaFree(memory);
  }

  // Both sides see it; freed with the machine.
  template <typename T>
  T* Allocate(std::size_t count) {
    void* memory = nullptr;
    const std::size_t bytes = count * sizeof(T);
    cudaError_t error = cudaMallocManaged(&memory, bytes);
    if (error == cudaSuccess) {
      memory_.push_back(memory);
      error = cudaMemset(memory, 0, bytes);
    }
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
      Stop(results_, "memory of " + std::to_string(bytes) + " bytes", error);
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
  Results& results_;
  std::vector<void*> memory_;
};

// Numbers of magnitude 0.5 to 2 with all bits in use: products of zeros take less power, and run
// faster, than those of a model.
__global__ void FillRandom(std::uint16_t* data, std::int64_t count) {
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < count; i += std::int64_t{gridDim.x} * blockDim.x) {
    const auto words = base::Philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, 1);
    data[i] = static_cast<std::uint16_t>(0x3f00 | (words[0] & 0x80ff));
  }
}
std::uint16_t* RandomBf16(NativeMachine& machine, std::size_t count) {
  auto* const data = machine.Allocate<std::uint16_t>(count);
  FillRandom<<<1024, 256>>>(data, static_cast<std::int64_t>(count));
  return data;
}
// Managed memory that the host has written is brought over before it is timed.
float* RandomFloats(NativeMachine& machine, std::size_t count) {
  float* const data = machine.Allocate<float>(count);
  std::mt19937 random(11);
  FillNormal(data, static_cast<std::int64_t>(count), random);
  return data;
}

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

// A speed, or what went wrong with what was timed.
void ReportSpeed(Results& results, const std::string& what, double amount, const char* unit) {
  const cudaError_t error = cudaDeviceSynchronize();
  const cudaError_t last = cudaGetLastError();
  if (error != cudaSuccess || last != cudaSuccess) {
    Stop(results, what, error != cudaSuccess ? error : last);
  }
  results.Line(what + ": " + std::to_string(amount) + " " + unit);
}

// Bytes read and written a second by the device's own copy: the limit for decode.
void ProbeCopies(Results& results) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  void* from = nullptr;
  void* to = nullptr;
  if (cudaMalloc(&from, kBytes) != cudaSuccess || cudaMalloc(&to, kBytes) != cudaSuccess) {
    results.Line("copy bandwidth: no memory for two buffers of 1 GiB");
    cudaGetLastError();  // or the next one to look would take it for its own
  } else {
    const double seconds =
        SecondsOf(10, [&] { cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice); });
    ReportSpeed(results, "copy bandwidth", 2.0 * kBytes / seconds * 1e-9, "GB/s");
  }
  cudaFree(from);
  cudaFree(to);
}

void ProbeGemm(NativeMachine& machine, Results& results) {
  constexpr int kRows = 2048, kOutputs = 4096, kInputs = 4096;
  cuda::GemmArguments arguments;
  arguments.x = RandomBf16(machine, std::size_t{kRows} * kInputs);
  arguments.w = RandomBf16(machine, std::size_t{kOutputs} * kInputs);
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
  ReportSpeed(results, "own matrix product, 2048 x 4096 x 4096", operations / seconds * 1e-12,
              "TFLOP/s");
}

// 8 KV heads of 128 shared by 4 heads each, blocks of 16 tokens, contexts of 4,096.
struct ProbeShape {
  static constexpr int kLength = 4096, kKvHeads = 8, kGroup = 4, kSize = 128;
  static constexpr int kHeads = kKvHeads * kGroup, kColumns = kHeads * kSize;
  static constexpr int kBlocks = kLength / 16;
  static constexpr std::int64_t kPlane = std::int64_t{kKvHeads} * 16 * kSize * 2;
  static constexpr std::int64_t kSequenceBytes = 2 * kPlane * kBlocks;
  static constexpr float kScale = 0.088f;

  static cuda::KvArguments Kv(NativeMachine& machine, int sequences) {
    auto* const pool = reinterpret_cast<unsigned char*>(
        RandomBf16(machine, static_cast<std::size_t>(kSequenceBytes * sequences / 2)));
    cuda::KvArguments kv;
    kv.key = {pool, 2 * kPlane, 0, 16 * kSize * 2, kSize * 2};
    kv.value = kv.key;
    kv.value.base += kPlane;
    kv.block_shift = 4;
    return kv;
  }
  static std::uint32_t* Table(NativeMachine& machine, int sequences) {
    auto* const table = machine.Allocate<std::uint32_t>(std::size_t{kBlocks} * sequences);
    for (int i = 0; i < sequences * kBlocks; ++i) table[i] = static_cast<std::uint32_t>(i);
    return table;
  }
};

void ProbeDecode(NativeMachine& machine, Results& results) {
  using Shape = ProbeShape;
  constexpr int kSequences = 64, kSlices = Shape::kLength / cuda::kChunkTokens;
  cuda::DecodeArguments arguments;
  arguments.query = {RandomFloats(machine, std::size_t{kSequences} * Shape::kColumns),
                     Shape::kColumns};
  arguments.kv = Shape::Kv(machine, kSequences);
  auto* const shares = machine.Allocate<cuda::DecodeShare>(kSequences * kSlices);
  auto* const slices = machine.Allocate<cuda::DecodeSlice>(kSequences * kSlices);
  for (int i = 0; i < kSequences * kSlices; ++i) {
    const int sequence = i / kSlices;
    const int first = i % kSlices * cuda::kChunkTokens;
    slices[i] = {sequence, sequence * Shape::kBlocks, first, first + cuda::kChunkTokens};
    shares[i] = {i, 1};
  }
  arguments.shares = shares;
  arguments.slices = slices;
  arguments.block_table = Shape::Table(machine, kSequences);
  const std::size_t sums = std::size_t{kSequences} * kSlices * Shape::kHeads;
  arguments.partial_out = machine.Allocate<float>(sums * Shape::kSize);
  arguments.partial_sums = machine.Allocate<float>(sums * 2);
  arguments.group = Shape::kGroup;
  arguments.num_query_heads = Shape::kHeads;
  arguments.scale = Shape::kScale;
  constexpr cuda::DecodeShape kShape = cuda::DecodeShapeOf(Shape::kSize, cuda::kDecodeHeads);
  const double seconds = SecondsOf(10, [&] {
    machine.Enqueue<&cuda::Decode<Shape::kSize, cuda::kDecodeHeads>>(
        {kSequences * kSlices, Shape::kKvHeads}, cuda::DecodeShape::kThreads, kShape.SharedBytes(),
        arguments);
  });
  const auto bytes = static_cast<double>(Shape::kSequenceBytes * kSequences);
  ReportSpeed(results, "decode attention without its merge, 64 contexts of 4096",
              bytes / seconds * 1e-9, "GB/s of K and V");
}

// One prompt, all of it in one piece.
void ProbePrefill(NativeMachine& machine, Results& results) {
  using Shape = ProbeShape;
  constexpr cuda::AttentionShape kShape = cuda::AttentionShapeOf(Shape::kSize);
  constexpr int kTiles = Shape::kLength * Shape::kGroup / kShape.rows;
  const std::size_t elements = std::size_t{Shape::kLength} * Shape::kColumns;
  cuda::AttentionArguments arguments;
  arguments.query = {RandomFloats(machine, elements), Shape::kColumns};
  arguments.out = {machine.Allocate<float>(elements), Shape::kColumns};
  arguments.kv = Shape::Kv(machine, 1);
  auto* const item = machine.Allocate<cuda::AttentionItem>(1);
  item[0].num_tokens = Shape::kLength;
  auto* const tiles = machine.Allocate<cuda::AttentionTile>(kTiles);
  for (int i = 0; i < kTiles; ++i) tiles[i].first_packed_row = i * kShape.rows;
  arguments.tiles = tiles;
  arguments.items = item;
  arguments.block_table = Shape::Table(machine, 1);
  arguments.group = Shape::kGroup;
  arguments.scale = Shape::kScale;
  const double seconds = SecondsOf(10, [&] {
    machine.Enqueue<&cuda::Attention<Shape::kSize>>({kTiles, Shape::kKvHeads}, kShape.NumThreads(),
                                                    kShape.SharedBytes(), arguments);
  });
  // Two products over the half of the square below the diagonal.
  const double operations = 2.0 * Shape::kLength * Shape::kLength * Shape::kColumns;
  ReportSpeed(results, "prefill attention, one prompt of 4096", operations / seconds * 1e-12,
              "TFLOP/s");
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
    return kExitWithoutGpu;
  }
  const std::string source =
      std::string(properties.name) + ", sm_" + std::to_string(properties.major) +
      std::to_string(properties.minor) + ", " + std::to_string(properties.multiProcessorCount) +
      " multiprocessors, CUDA driver " + std::to_string(version) + ", commit " + commit;
  results.Line(source);
  NativeMachine machine(results);
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
  ProbePrefill(machine, results);
  results.Line(passed ? "all checks passed" : "some checks FAILED");
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace pagoda::gpu_check

int main(int count, char** arguments) {
  return pagoda::gpu_check::Main(count > 1 ? arguments[1] : "gpu-check.txt",
                                 count > 2 ? arguments[2] : "unknown");
}
