#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/one_line.h"
#include "base/runtime/machine_memory.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client/capacity.h"
#include "client/commands.h"
#include "client/errors.h"
#include "client/figures.h"
#include "client/gpu_table.h"
#include "client/model_file.h"
#include "client/serve_command.h"

namespace pagoda::client {
namespace {

using base::FormatBytes;
using nlohmann::json;

// Where the model is to run, and what is there to be filled.
struct Target {
  std::string name;
  std::string weights;  // the form they take there
  bool is_gpu = false;
  std::int64_t memory_bytes = 0;
  std::string memory_from;
};

struct Answer {
  PlannedModel model;
  absl::Status words;  // why a server would refuse the vocabulary or the chat template
  Target target;
  Capacity capacity;
};

absl::StatusOr<Target> FindTarget(const FileOptions& file) {
  PAGODA_ASSIGN_OR_RETURN(PlanTarget named, ParseTarget(file.target));
  Target target;
  target.name = std::move(named.name);
  target.is_gpu = named.is_gpu;
  target.weights = target.is_gpu ? "every matrix as rows of bf16, a tied head once more"
                                 : "in column panels, whatever the instruction class";
  if (file.memory.has_value()) {
    PAGODA_ASSIGN_OR_RETURN(target.memory_bytes, base::ParseByteSize(*file.memory));
    target.memory_from = "given";
  } else if (named.memory_bytes.has_value()) {
    target.memory_bytes = *named.memory_bytes;
    target.memory_from = std::move(named.memory_from);
  } else {
    PAGODA_ASSIGN_OR_RETURN(target.memory_bytes, base::AvailableMemory());
    target.memory_from = "available on this machine now";
  }
  return target;
}

absl::StatusOr<Answer> Work(const FileOptions& file) {
  Answer answer;
  PAGODA_ASSIGN_OR_RETURN(answer.target, FindTarget(file));
  const auto layout =
      answer.target.is_gpu ? kernels::PackLayout::kBf16Rows : kernels::PackLayout::kColumnPanels;
  PAGODA_ASSIGN_OR_RETURN(answer.model, PlanModelFile(file.path, file.load, layout));
  answer.words = CheckWords(file.path);
  answer.capacity = PlanCapacity(answer.model.memory, file.batch,
                                 answer.model.config.context_length, answer.target.memory_bytes);
  return answer;
}

// --- For a person ---

void PrintFigure(std::ostream& out, const std::string& label, std::int64_t bytes,
                 const std::string& note = {}) {
  const std::string exact = Grouped(bytes), short_form = FormatBytes(bytes);
  const auto pad = [](std::size_t width, std::size_t used) {
    return std::string(width > used ? width - used : 1, ' ');
  };
  out << "  " << label << pad(22, label.size()) << pad(18, exact.size()) << exact << " bytes"
      << pad(12, short_form.size()) << short_form;
  if (!note.empty()) out << "   " << note;
  out << "\n";
}

void Print(const FileOptions& file, const Answer& answer, std::ostream& out) {
  const auto& [model, words, target, capacity] = answer;
  const model::MemoryPlan& memory = model.memory;
  out << "Model    " << std::filesystem::path(file.path).filename().string() << ": "
      << Grouped(model.num_parameters) << " parameters, " << model.weight_format << "\n"
      << "Target   " << target.name << ", weights " << target.weights << "; "
      << FormatBytes(target.memory_bytes) << " (" << target.memory_from << ")\n";
  if (target.is_gpu) {
    out << "         this is arithmetic ahead of its time: this build runs on the CPU alone\n";
  }
  out << "Asked    " << file.batch << " requests of " << Grouped(memory.max_model_len)
      << " tokens at once, KV in " << base::Name(model.kv_type) << ", blocks of "
      << memory.block_size << " tokens\n\n";
  PrintFigure(out, "Weights", memory.weight_bytes);
  PrintFigure(out, "KV per token", memory.kv_bytes_per_token);
  PrintFigure(out, "KV per request", capacity.kv_bytes_per_request,
              absl::StrCat(Grouped(memory.BlocksPerFullRequest()), " blocks of ",
                           Grouped(memory.kv_bytes_per_block), " bytes"));
  PrintFigure(out, "KV pool", capacity.pool_bytes,
              absl::StrCat(Grouped(capacity.pool_blocks), " blocks, the null block included"));
  PrintFigure(out, "In total", capacity.total_bytes,
              capacity.fits ? absl::StrCat("fits, ", FormatBytes(capacity.free_bytes), " left")
                            : absl::StrCat("does not fit, ",
                                           base::FormatBytesUp(-capacity.free_bytes), " missing"));
  out << "\n  Longest context at this batch   " << Grouped(capacity.longest_context) << " tokens"
      << (capacity.longest_context == model.config.context_length ? ", the model's own limit" : "")
      << "\n  Largest batch at this context   " << Grouped(capacity.largest_batch) << " requests"
      << (capacity.largest_batch == kMostSequences ? ", a server's limit" : "") << "\n"
      << "\nNot counted: what a step works in, the program, and the mapped file beyond the weights "
         "used in place.\n";
  if (!words.ok()) {
    out << "It would not be served: " << base::OneLine(base::ToStd(words.message())) << "\n";
  } else if (capacity.fits && !target.is_gpu) {
    out << "Serve it: " << ServeCommand(file, model, capacity.pool_bytes) << "\n";
  }
  out << std::flush;
}

// --- For scripts ---

json AsJson(const FileOptions& file, const Answer& answer) {
  const auto& [model, words, target, capacity] = answer;
  const model::MemoryPlan& memory = model.memory;
  return {{"file", file.path},
          {"num_parameters", model.num_parameters},
          {"weight_format", model.weight_format},
          {"activation_dtype", model.activation_dtype},
          {"kv_cache_dtype", base::Name(model.kv_type)},
          {"target", target.name},
          {"target_is_built", !target.is_gpu},
          {"memory_bytes", target.memory_bytes},
          {"context", memory.max_model_len},
          {"batch", file.batch},
          {"block_size", memory.block_size},
          {"weight_bytes", memory.weight_bytes},
          {"kv_bytes_per_token", memory.kv_bytes_per_token},
          {"kv_bytes_per_block", memory.kv_bytes_per_block},
          {"blocks_per_request", memory.BlocksPerFullRequest()},
          {"kv_bytes_per_request", capacity.kv_bytes_per_request},
          {"pool_blocks", capacity.pool_blocks},
          {"pool_bytes", capacity.pool_bytes},
          {"total_bytes", capacity.total_bytes},
          {"fits", capacity.fits},
          {"free_bytes", capacity.free_bytes},
          {"blocks_that_fit", capacity.blocks_that_fit},
          {"longest_context", capacity.longest_context},
          {"largest_batch", capacity.largest_batch},
          {"refused", words.ok() ? json() : json(std::string(words.message()))}};
}

CallError DoesNotFit(const FileOptions& file, const Answer& answer) {
  const Capacity& capacity = answer.capacity;
  const std::int64_t memory = answer.target.memory_bytes;
  if (answer.model.memory.weight_bytes > memory) {
    CallError error = LocalError(absl::ResourceExhaustedError(absl::StrCat(
        "the weights alone take ", base::FormatBytesUp(answer.model.memory.weight_bytes), ", ",
        FormatBytes(memory), " are there")));
    error.to_do = "choose a file with smaller weights, or a target with more memory";
    return error;
  }
  CallError error = LocalError(absl::ResourceExhaustedError(
      absl::StrCat("weights and KV pool take ", base::FormatBytesUp(capacity.total_bytes), ", ",
                   FormatBytes(memory), " are there, ", base::FormatBytesUp(-capacity.free_bytes),
                   " are missing")));
  error.to_do = absl::StrCat("use --batch ", capacity.largest_batch, " or less, or --context ",
                             capacity.longest_context, " or less at this batch, or give ",
                             base::FormatBytesUp(capacity.total_bytes), " with --memory");
  if (capacity.longest_context == 0) {
    error.to_do = absl::StrCat(file.batch,
                               " requests have no room for a block each beside the "
                               "weights; use a smaller --batch, or a target with more memory");
  } else if (capacity.largest_batch == 0) {
    error.to_do = absl::StrCat("not one request of this context fits; with --batch ", file.batch,
                               " the longest context is ", capacity.longest_context, " tokens");
  }
  return error;
}

}  // namespace

int RunPlan(const Options& options, Console& console) {
  const std::string asked = absl::StrCat("plan ", options.file.path);
  const auto answer = Work(options.file);
  if (!answer.ok()) {
    return ReportFileError(options, FileError(answer.status(), options.file.path), asked, console);
  }
  const bool fits = answer->capacity.fits;
  if (options.json) {
    json made = AsJson(options.file, *answer);
    if (!fits) made.update(ErrorAsJson(DoesNotFit(options.file, *answer)));
    console.out << made.dump() << std::endl;
    return fits ? kExitOk : kExitFailed;
  }
  Print(options.file, *answer, console.out);
  return fits ? kExitOk
              : ReportFileError(options, DoesNotFit(options.file, *answer), asked, console);
}

}  // namespace pagoda::client
