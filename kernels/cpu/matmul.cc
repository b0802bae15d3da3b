#include "kernels/cpu/matmul.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "kernels/check_shapes.h"

namespace pagoda::kernels::cpu {
namespace {

// Rows of one task. A block of rows stays in the second-level cache while the panels of the task
// pass over it.
constexpr std::int64_t kRowsPerTask = 64;
// A task is worth claiming from about this much work on: some microseconds.
constexpr std::int64_t kProductsPerTask = 150'000;
constexpr std::int64_t kTasksPerThread = 4;
// Elements that one thread normalises and quantizes faster than it would take to share them out.
constexpr std::int64_t kElementsPerPreparation = 4'096;

std::int64_t AlignUp(std::int64_t bytes) { return base::RoundUp<std::int64_t>(bytes, 64); }

bool NeedsInt8(const PackPlan& plan) {
  return std::any_of(plan.parts.begin(), plan.parts.end(), [](const PackedPart& part) {
    return part.activation == ActivationType::kInt8;
  });
}

std::int64_t NumPanels(const PackedPart& part) {
  return base::DivUp(part.num_outputs, kPanelColumns);
}

Int8Rows PlaceInt8Rows(Scratch& scratch, std::int64_t num_rows, std::int64_t num_inputs) {
  const std::int64_t bytes = AlignUp(num_rows * num_inputs);
  const std::int64_t plane = AlignUp(num_rows * (num_inputs / kQuantBlock) * 4);
  std::byte* memory = scratch.Get(bytes + 4 * plane);
  return {reinterpret_cast<std::int8_t*>(memory),
          reinterpret_cast<float*>(memory + bytes),
          reinterpret_cast<std::int32_t*>(memory + bytes + plane),
          reinterpret_cast<float*>(memory + bytes + 2 * plane),
          reinterpret_cast<std::int32_t*>(memory + bytes + 3 * plane),
          num_inputs};
}

}  // namespace

void Matmul::PrepareRows(const MatmulParams& params, const RmsNormParams* norm) {
  CheckShapes(params);
  const std::int64_t num_rows = params.x.rows;
  const std::int64_t num_inputs = params.x.columns;
  if (norm != nullptr) {
    CheckShapes(*norm);
    PAGODA_CHECK(norm->out.data == params.x.data);
  }
  const bool int8 = NeedsInt8(params.weight->plan);
  PAGODA_CHECK(params.weight->plan.layout == PackLayout::kColumnPanels);
  if (int8) int8_rows_ = PlaceInt8Rows(int8_scratch_, num_rows, num_inputs);
  if (!int8 && norm == nullptr) return;

  const std::int64_t rows_per_task =
      std::max<std::int64_t>(1, kElementsPerPreparation / num_inputs);
  pool_.Run(base::DivUp(num_rows, rows_per_task), [&](std::int64_t task, int) {
    const std::int64_t last = std::min(num_rows, (task + 1) * rows_per_task);
    for (std::int64_t row = task * rows_per_task; row < last; ++row) {
      if (norm != nullptr) {
        kernels_.norm_row(norm->in.Row(row), num_inputs, {norm->weight.data(), norm->epsilon},
                          norm->out.Row(row));
      }
      if (int8) kernels_.quantize_row(params.x.Row(row), int8_rows_.From(row));
    }
  });
}

PanelJob Matmul::MakeJob(const MatmulParams& params, std::size_t part, std::int64_t panel,
                         std::int64_t first_row) const {
  const PackedPart& packed = params.weight->plan.parts[part];
  const std::int64_t column = panel * kPanelColumns;
  PanelJob job;
  job.format = packed.format;
  job.panel = params.weight->Part(part) + panel * packed.unit_bytes;
  job.num_inputs = params.x.columns;
  job.num_columns = static_cast<int>(std::min(kPanelColumns, packed.num_outputs - column));
  if (packed.activation == ActivationType::kInt8) {
    job.int8_rows = int8_rows_.From(first_row);
  } else {
    job.float_rows = {params.x.Row(first_row), 0, params.x.columns, params.x.stride};
  }
  return job;
}

void Matmul::MultiplyPanel(const PanelJob& job, ActivationType activation) const {
  if (activation == ActivationType::kInt8) {
    kernels_.multiply_int8(job);
  } else {
    kernels_.multiply_float(job);
  }
}

template <typename Use>
void Matmul::ForRanges(std::int64_t num_panels, std::int64_t num_rows, std::int64_t num_inputs,
                       const Use& use) {
  const std::int64_t num_row_blocks = base::DivUp(num_rows, kRowsPerTask);
  const std::int64_t products =
      std::min(num_rows, kRowsPerTask) * num_inputs * kPanelColumns;  // of one panel
  const std::int64_t fair_share =
      base::DivUp<std::int64_t>(num_panels * num_row_blocks, pool_.num_threads() * kTasksPerThread);
  const std::int64_t panels_per_task = std::max<std::int64_t>(
      1, std::min({base::DivUp(kProductsPerTask, products), fair_share, num_panels}));
  const std::int64_t num_panel_blocks = base::DivUp(num_panels, panels_per_task);
  pool_.Run(num_panel_blocks * num_row_blocks, [&](std::int64_t task, int) {
    const std::int64_t first_panel = task % num_panel_blocks * panels_per_task;
    const std::int64_t first_row = task / num_panel_blocks * kRowsPerTask;
    use(Range{first_panel, std::min(num_panels, first_panel + panels_per_task), first_row,
              std::min(num_rows, first_row + kRowsPerTask)});
  });
}

void Matmul::Run(const MatmulParams& params, const RmsNormParams* norm) {
  if (params.x.rows == 0) return;
  PrepareRows(params, norm);
  const std::vector<PackedPart>& parts = params.weight->plan.parts;
  std::int64_t num_panels = 0;
  for (const PackedPart& part : parts) num_panels += NumPanels(part);
  ForRanges(num_panels, params.x.rows, params.x.columns, [&](const Range& range) {
    std::size_t part = 0;
    std::int64_t first_of_part = 0;  // the number of the part's panel 0
    for (std::int64_t i = range.first_panel; i < range.last_panel; ++i) {
      while (i >= first_of_part + NumPanels(parts[part])) first_of_part += NumPanels(parts[part++]);
      const std::int64_t panel = i - first_of_part;
      PanelJob job = MakeJob(params, part, panel, range.first_row);
      job.num_rows = range.last_row - range.first_row;
      job.out = params.out.Row(range.first_row) + parts[part].first_output + panel * kPanelColumns;
      job.out_stride = params.out.stride;
      job.add = params.output == MatmulOutput::kAdd;
      MultiplyPanel(job, parts[part].activation);
    }
  });
}

void Matmul::RunGateUp(const MatmulParams& params, const RmsNormParams* norm, MatrixView out) {
  if (params.x.rows == 0) return;
  PrepareRows(params, norm);
  const std::vector<PackedPart>& parts = params.weight->plan.parts;
  PAGODA_CHECK(parts.size() == 2 && parts[0].num_outputs == parts[1].num_outputs);
  PAGODA_CHECK(out.rows == params.x.rows && out.columns == parts[0].num_outputs);
  ForRanges(NumPanels(parts[0]), out.rows, 2 * params.x.columns, [&](const Range& range) {
    alignas(64) float products[2][kRowsPerTask][kPanelColumns];
    for (std::int64_t panel = range.first_panel; panel < range.last_panel; ++panel) {
      std::int64_t num_columns = 0;
      for (std::size_t part = 0; part < 2; ++part) {
        PanelJob job = MakeJob(params, part, panel, range.first_row);
        job.num_rows = range.last_row - range.first_row;
        job.out = products[part][0];
        job.out_stride = kPanelColumns;
        num_columns = job.num_columns;
        MultiplyPanel(job, parts[part].activation);
      }
      for (std::int64_t row = range.first_row; row < range.last_row; ++row) {
        const std::int64_t i = row - range.first_row;
        kernels_.silu_mul_row(products[0][i], products[1][i], num_columns,
                              out.Row(row) + panel * kPanelColumns);
      }
    }
  });
}

}  // namespace pagoda::kernels::cpu
