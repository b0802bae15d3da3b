#include "client/serve_command.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/kv_geometry.h"
#include "base/strings.h"

namespace pagoda::client {
namespace {

// Of the server when nothing is said; a step must hold a block beside one token of each sequence.
constexpr std::int32_t kServersStepTokens = 512;

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_-./:,=+@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string ShellWord(std::string_view text) {
  bool is_plain = !text.empty();
  for (const char c : text) is_plain = is_plain && IsPlain(c);
  if (is_plain) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(base::ToAbsl(text), {{"'", "'\\''"}}), "'");
}

std::string ServeCommand(const FileOptions& file, const PlannedModel& model,
                         std::int64_t pool_bytes) {
  const std::int32_t least_step = file.batch + file.load.block_size;
  return absl::StrCat(
      "pagoda-server --model ", ShellWord(file.path), " --max-model-len ",
      model.memory.max_model_len, " --max-num-seqs ", file.batch,
      least_step > kServersStepTokens ? absl::StrCat(" --max-num-batched-tokens ", least_step) : "",
      " --block-size ", file.load.block_size, " --activation-dtype ", model.activation_dtype,
      " --kv-cache-dtype ", base::Name(model.kv_type), " --kv-cache-memory ", pool_bytes);
}

}  // namespace pagoda::client
