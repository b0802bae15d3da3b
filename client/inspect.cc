#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/byte_size.h"
#include "base/one_line.h"
#include "client/commands.h"
#include "client/errors.h"
#include "client/figures.h"
#include "client/model_file.h"

namespace pagoda::client {
namespace {

using base::FormatBytes;
using nlohmann::json;

struct TypeShare {
  std::string type;
  std::int64_t num_tensors = 0;
  std::int64_t bytes = 0;
};

// The tensor types, the one with most bytes first.
std::vector<TypeShare> SharesOf(const std::vector<TensorFacts>& tensors) {
  std::map<std::string, TypeShare> by_type;
  for (const TensorFacts& tensor : tensors) {
    TypeShare& share = by_type[tensor.type];
    share.type = tensor.type;
    ++share.num_tensors;
    share.bytes += tensor.bytes;
  }
  std::vector<TypeShare> shares;
  for (const auto& [type, share] : by_type) shares.push_back(share);
  std::sort(shares.begin(), shares.end(), [](const TypeShare& a, const TypeShare& b) {
    return std::tie(b.bytes, a.type) < std::tie(a.bytes, b.type);
  });
  return shares;
}

std::int64_t BytesOf(const std::vector<TensorFacts>& tensors) {
  std::int64_t bytes = 0;
  for (const TensorFacts& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

// --- For a person ---

void PrintLine(std::ostream& out, std::string_view label, const std::string& text) {
  out << label << std::string(label.size() < 15 ? 15 - label.size() : 1, ' ') << base::OneLine(text)
      << "\n";
}

std::string RopeText(const model::Config& config) {
  const auto whole = static_cast<std::int64_t>(config.rope_base);
  std::string text = "RoPE base ";
  if (static_cast<double>(whole) == config.rope_base) {
    text += Grouped(whole);
  } else {
    absl::StrAppend(&text, config.rope_base);
  }
  if (config.rope_position_scale != 1.0) {
    absl::StrAppend(&text, ", positions divided by ", config.rope_position_scale);
  }
  if (config.llama3_scaling.has_value()) {
    absl::StrAppend(&text, ", low frequencies slowed by ", config.llama3_scaling->factor,
                    " from a context of ", Grouped(config.llama3_scaling->original_context));
  }
  return text;
}

void PrintModel(const PlannedModel& planned, std::ostream& out) {
  const model::Config& config = planned.config;
  PrintLine(out, "Layers",
            absl::StrCat(config.num_layers, ", hidden ", config.hidden_size, ", feed-forward ",
                         config.feed_forward_size));
  PrintLine(out, "Attention",
            absl::StrCat(config.num_heads, " query and ", config.num_kv_heads, " KV heads of ",
                         config.head_size));
  PrintLine(
      out, "Parameters",
      absl::StrCat(Grouped(planned.num_parameters), " (", Abbreviated(planned.num_parameters),
                   "), the head ", planned.has_tied_head ? "is the embedding" : "is its own"));
  PrintLine(out, "Context",
            absl::StrCat(Grouped(config.context_length), " tokens, ", RopeText(config)));
  PrintLine(out, "KV per token",
            absl::StrCat(Grouped(planned.memory.kv_bytes_per_token), " bytes in ",
                         base::Name(planned.kv_type), "; ",
                         FormatBytes(planned.memory.kv_bytes_per_token * config.context_length),
                         " for a full context"));
  PrintLine(out, "Loads as",
            absl::StrCat(planned.weight_format, ", ", FormatBytes(planned.memory.weight_bytes),
                         " packed, activations ", planned.activation_dtype));
}

void PrintTokenizer(const ModelFacts& facts, std::ostream& out) {
  const TokenizerFacts& tokenizer = facts.tokenizer;
  PrintLine(out, "Tokenizer", tokenizer.kind);
  if (tokenizer.usable.ok()) {
    const std::string bos =
        tokenizer.bos.has_value()
            ? absl::StrCat(*tokenizer.bos,
                           tokenizer.adds_bos ? ", put first" : ", not put first by itself")
            : "none";
    PrintLine(out, "",
              absl::StrCat(Grouped(tokenizer.vocabulary_size), " tokens; BOS ", bos, "; EOS ",
                           absl::StrJoin(tokenizer.eos, ", ")));
  } else {
    PrintLine(out, "", absl::StrCat("refused: ", tokenizer.usable.message()));
  }
  if (!facts.template_bytes.has_value()) {
    PrintLine(out, "Chat template", "no");
  } else {
    PrintLine(out, "Chat template",
              absl::StrCat("yes, ", Grouped(*facts.template_bytes), " bytes",
                           facts.template_usable.ok()
                               ? std::string()
                               : absl::StrCat("; refused: ", facts.template_usable.message())));
  }
}

void PrintTensors(const ModelFacts& facts, bool lists_all, std::ostream& out) {
  const std::int64_t all_bytes = BytesOf(facts.tensors);
  PrintLine(out, "Tensors", absl::StrCat(facts.tensors.size(), ", ", FormatBytes(all_bytes)));
  for (const TypeShare& share : SharesOf(facts.tensors)) {
    const double percent = 100.0 * static_cast<double>(share.bytes) /
                           static_cast<double>(std::max<std::int64_t>(1, all_bytes));
    PrintLine(out, "",
              absl::StrCat(share.type, ": ", share.num_tensors,
                           share.num_tensors == 1 ? " tensor, " : " tensors, ",
                           FormatBytes(share.bytes), ", ", Fixed(percent, 1), " %"));
  }
  if (!lists_all) return;
  for (const TensorFacts& tensor : facts.tensors) {
    out << "  " << base::OneLine(tensor.name) << "  " << tensor.type << " ["
        << absl::StrJoin(tensor.shape, ", ") << "]  " << Grouped(tensor.bytes) << " bytes\n";
  }
}

void Print(const FileOptions& file, const ModelFacts& facts, std::ostream& out) {
  PrintLine(out, "File",
            absl::StrCat(std::filesystem::path(file.path).filename().string(), ", ", facts.format,
                         ", ", FormatBytes(facts.file_bytes)));
  if (!facts.name.empty()) PrintLine(out, "Name", facts.name);
  PrintLine(out, "Architecture", facts.architecture);
  if (facts.planned.ok()) {
    PrintModel(*facts.planned, out);
  } else {
    PrintLine(out, "Loads as", absl::StrCat("refused: ", facts.planned.status().message()));
  }
  PrintTokenizer(facts, out);
  PrintTensors(facts, file.lists_tensors, out);
  out << std::flush;
}

// --- For scripts ---

json UsableAsJson(const absl::Status& usable) {
  return usable.ok() ? json() : json(std::string(usable.message()));
}

json ModelAsJson(const PlannedModel& planned) {
  const model::Config& config = planned.config;
  return {{"num_layers", config.num_layers},
          {"hidden_size", config.hidden_size},
          {"feed_forward_size", config.feed_forward_size},
          {"num_heads", config.num_heads},
          {"num_kv_heads", config.num_kv_heads},
          {"head_size", config.head_size},
          {"num_parameters", planned.num_parameters},
          {"has_tied_head", planned.has_tied_head},
          {"context_length", config.context_length},
          {"rope_base", config.rope_base},
          {"weight_format", planned.weight_format},
          {"weight_bytes", planned.memory.weight_bytes},
          {"activation_dtype", planned.activation_dtype},
          {"kv_cache_dtype", base::Name(planned.kv_type)},
          {"kv_bytes_per_token", planned.memory.kv_bytes_per_token}};
}

json AsJson(const FileOptions& file, const ModelFacts& facts) {
  const TokenizerFacts& tokenizer = facts.tokenizer;
  json made = {{"file", file.path},
               {"format", facts.format},
               {"file_bytes", facts.file_bytes},
               {"name", facts.name},
               {"architecture", facts.architecture},
               {"refused", UsableAsJson(facts.planned.status())},
               {"tokenizer",
                {{"kind", tokenizer.kind},
                 {"vocabulary_size", tokenizer.vocabulary_size},
                 {"eos_token_ids", tokenizer.eos},
                 {"adds_bos", tokenizer.adds_bos},
                 {"refused", UsableAsJson(tokenizer.usable)}}},
               {"has_chat_template", facts.template_bytes.has_value()},
               {"chat_template_refused", UsableAsJson(facts.template_usable)}};
  if (tokenizer.bos.has_value()) made["tokenizer"]["bos_token_id"] = *tokenizer.bos;
  if (facts.planned.ok()) made["model"] = ModelAsJson(*facts.planned);
  for (const TypeShare& share : SharesOf(facts.tensors)) {
    made["tensor_types"].push_back(
        {{"type", share.type}, {"num_tensors", share.num_tensors}, {"bytes", share.bytes}});
  }
  if (!file.lists_tensors) return made;
  for (const TensorFacts& tensor : facts.tensors) {
    made["tensors"].push_back({{"name", tensor.name},
                               {"type", tensor.type},
                               {"shape", tensor.shape},
                               {"bytes", tensor.bytes}});
  }
  return made;
}

}  // namespace

int RunInspect(const Options& options, Console& console) {
  const auto facts = ReadModelFacts(options.file.path);
  if (!facts.ok()) {
    return ReportFileError(options, FileError(facts.status(), options.file.path),
                           absl::StrCat("inspect ", options.file.path), console);
  }
  if (options.json) {
    console.out << AsJson(options.file, *facts).dump(-1, ' ', false, json::error_handler_t::replace)
                << std::endl;
  } else {
    Print(options.file, *facts, console.out);
  }
  const bool is_served =
      facts->planned.ok() && facts->tokenizer.usable.ok() && facts->template_usable.ok();
  return is_served ? kExitOk : kExitFailed;
}

}  // namespace pagoda::client
