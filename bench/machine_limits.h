#pragma once

// What this machine can do right now, measured in this process: a kernel's time means something
// only beside these. Rates move from minute to minute on a shared machine, so they are taken again
// for every run.
namespace pagoda::bench {

struct MachineLimits {
  double read_bytes_per_second = 0;     // from memory, beyond every cache
  double fma_per_second = 0;            // fp32 fused multiply-adds, per lane
  double int8_products_per_second = 0;  // products of bytes in the widest byte instruction
};

// With `num_threads` threads at once. About a second.
MachineLimits MeasureLimits(int num_threads);

}  // namespace pagoda::bench
