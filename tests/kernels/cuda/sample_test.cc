#include "kernels/reference/sample.h"

#include <cstdlib>
#include <iostream>
#include <limits>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/cuda/cuda_fixture.h"
#include "tests/kernels/suite/sampling_definition.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr unsigned kSeed = 71;

// PAGODA_TEST_SAMPLE_ROWS asks for more of the same.
int NumRows() {
  const char* const asked = std::getenv("PAGODA_TEST_SAMPLE_ROWS");
  return asked != nullptr ? std::max(1, std::atoi(asked)) : 4'000;
}

// Rows whose filters fall exactly on a token: of a flat row as many as top-p says to the last bit,
// of two values as many as top-k says, logits at the bound of min-p and one step below it.
struct Drawable {
  std::vector<float> logits;
  SampleRow row;
};

void FallOnTopP(Drawable& made, std::mt19937& random) {
  const std::size_t size = std::size_t{1} << (1 + random() % 6);
  made.logits.assign(size, static_cast<float>(random() % 7) - 3.0f);
  const auto part = static_cast<float>(1 + random() % size);
  made.row.temperature = 1.0f;
  made.row.top_p = part / static_cast<float>(size);
  if (random() % 3 == 0 && made.row.top_p < 1.0f) {
    made.row.top_p = std::nextafter(made.row.top_p, random() % 2 == 0 ? 0.0f : 1.0f);
  }
  made.row.top_k = 0;
  made.row.min_p = 0.0f;
}

void FallOnTopK(Drawable& made, std::mt19937& random) {
  for (float& x : made.logits) x = static_cast<float>(random() % 2);
  made.row.top_k = static_cast<std::int32_t>(1 + random() % made.logits.size());
  made.row.min_p = 0.0f;
}

void FallOnMinP(Drawable& made, std::mt19937& random) {
  made.row.min_p = static_cast<float>(1 + random() % 99) / 100.0f;
  made.row.temperature = 1.0f;
  const float edge = base::Log(made.row.min_p);
  const float steps[] = {0.0f, edge, std::nextafter(edge, -1e9f), std::nextafter(edge, 0.0f)};
  for (float& x : made.logits) x = steps[random() % 4];
  made.logits.front() = 0.0f;
}

// Ordinary rows and rows with ties, flat, with one token, masked (HardLogits), and those above.
Drawable MakeRow(std::mt19937& random) {
  Drawable made;
  made.logits = HardLogits(1 + random() % 70, random);
  made.row = RandomParameters({}, random);
  switch (random() % 8) {
    case 0:
      FallOnTopP(made, random);
      break;
    case 1:
      FallOnTopK(made, random);
      break;
    case 2:
      FallOnMinP(made, random);
      break;
    default:
      if (random() % 20 == 0) made.row.temperature = 0.0f;
  }
  return made;
}

class SampleTest : public CudaTest {
 protected:
  // Draws from all rows in one launch, leaving in `weights` what each row kept.
  std::vector<SampleResult> Launch(std::span<const Drawable> rows,
                                   std::vector<std::vector<float>>& weights) {
    std::vector<SampleRowArguments> arguments;
    weights.clear();
    for (const Drawable& each : rows) weights.emplace_back(each.logits.size(), kNan);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const SampleRow& row = rows[i].row;
      arguments.push_back({.logits = rows[i].logits.data(),
                           .weights = weights[i].data(),
                           .seed = row.seed,
                           .num_tokens = static_cast<std::int32_t>(rows[i].logits.size()),
                           .temperature = row.temperature,
                           .top_p = row.top_p,
                           .min_p = row.min_p,
                           .top_k = row.top_k,
                           .position = row.position,
                           .choice = row.choice});
    }
    std::vector<SampleResult> results(rows.size());
    const SampleArguments sample = {arguments.data(), results.data()};
    device_->Launch({.kernel = static_cast<std::uint16_t>(KernelId::kSample),
                     .grid = {static_cast<std::uint32_t>(rows.size()), 1, 1},
                     .num_threads = kElementThreads,
                     .shared_bytes = kSampleSharedBytes,
                     .arguments = std::as_bytes(std::span(&sample, 1))},
                    stream_);
    Finish();
    return results;
  }
};

void ExpectAsDefined(const Drawable& made, const SampleResult& found,
                     std::span<const float> weights) {
  SampleRow row = made.row;
  row.logits = made.logits;
  ASSERT_EQ(found.finite, 1u);
  ASSERT_EQ(found.token, reference::Sample(row).token);
  if (row.temperature == 0.0f) return;
  const SamplingDefinition definition(row);
  ASSERT_EQ(found.token, definition.Choose().token);
  const std::vector<bool> kept = definition.Kept();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ASSERT_EQ(BitsOf(weights[i]), BitsOf(kept[i] ? definition.weights()[i] : 0.0f)) << i;
  }
}

TEST_F(SampleTest, KeepsAndDrawsWhatTheDefinitionAndTheReferenceDo) {
  constexpr int kRowsPerLaunch = 200;
  std::cerr << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  const std::vector<Schedule> schedules = HostileSchedules();
  int num_filtered = 0;
  for (int first = 0; first < NumRows(); first += kRowsPerLaunch) {
    device_->SetSchedule(
        schedules[static_cast<std::size_t>(first / kRowsPerLaunch) % schedules.size()]);
    std::vector<Drawable> rows;
    for (int i = 0; i < kRowsPerLaunch; ++i) rows.push_back(MakeRow(random));
    std::vector<std::vector<float>> weights;
    const std::vector<SampleResult> found = Launch(rows, weights);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ExpectAsDefined(rows[i], found[i], weights[i]);
      if (HasFatalFailure()) FAIL() << "row " << static_cast<std::size_t>(first) + i;
      const auto gone = std::count(weights[i].begin(), weights[i].end(), 0.0f);
      num_filtered += gone > 0 && gone < std::ssize(weights[i]) ? 1 : 0;
    }
  }
  EXPECT_GT(num_filtered, NumRows() / 2);
}

}  // namespace
}  // namespace pagoda::kernels::cuda
