// VOCABULARY is a GGUF file, a model directory with a tokenizer.json, or the line form of
// vocabulary_file.h. Encodes what tests/oracle sends:
// records on standard input (see tests/oracle/oracle_tokenizer.py), ids or texts on standard
// output.
//
//     encode_tool VOCABULARY               records in, answers out, until the input ends
//     encode_tool VOCABULARY --time FILE   encodes the file's text ten times, prints the best
//     processor time

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "formats/gguf.h"
#include "tests/text/vocabulary_file.h"
#include "text/make_tokenizer.h"
#include "text/model_text.h"
#include "text/text_stream.h"
#include "text/tokenizer.h"

namespace pagoda::text {
namespace {

enum Mode : std::uint8_t {
  kPlain = 0,
  kControls = 1,
  kMarked = 2,
  kDecode = 3,
  kDecodeAll = 4,
};

template <typename T>
bool Read(T& value) {
  return std::fread(&value, sizeof(value), 1, stdin) == 1;
}

std::string ReadText() {
  std::uint32_t length = 0;
  PAGODA_CHECK(Read(length));
  std::string text(length, '\0');
  PAGODA_CHECK(std::fread(text.data(), 1, length, stdin) == length);
  return text;
}

MarkedText ReadMarked() {
  MarkedText text;
  std::uint32_t parts = 0;
  PAGODA_CHECK(Read(parts));
  for (; parts > 0; --parts) {
    std::uint8_t from_input = 0;
    PAGODA_CHECK(Read(from_input));
    text.parts.push_back({.text = ReadText(), .from_input = from_input != 0});
  }
  return text;
}

void Write(const absl::StatusOr<std::vector<base::TokenId>>& ids) {
  const auto word = [](std::uint32_t value) { std::fwrite(&value, sizeof(value), 1, stdout); };
  if (ids.ok()) {
    word(static_cast<std::uint32_t>(ids->size()));
    std::fwrite(ids->data(), sizeof(base::TokenId), ids->size(), stdout);
    return;
  }
  const std::string message(ids.status().message());
  word(0xFFFFFFFF);
  word(static_cast<std::uint32_t>(message.size()));
  std::fwrite(message.data(), 1, message.size(), stdout);
}

// The text of ids, with or without control tokens.
std::string Decode(const Tokenizer& tokenizer, ControlTokens control) {
  TextStream stream(tokenizer.strips_first_space() ? TextStream::FirstSpace::kDropped
                                                   : TextStream::FirstSpace::kKept);
  std::uint32_t count = 0;
  PAGODA_CHECK(Read(count));
  for (; count > 0; --count) {
    base::TokenId id = 0;
    PAGODA_CHECK(Read(id));
    stream.Append(TextBytes(tokenizer, id, control));
  }
  return stream.Finish(std::numeric_limits<std::uint64_t>::max());
}

void WriteText(const std::string& text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::fwrite(&length, sizeof(length), 1, stdout);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void EncodeRecords(const Tokenizer& tokenizer) {
  for (std::uint8_t mode = 0; Read(mode);) {
    if (mode == kDecode || mode == kDecodeAll) {
      WriteText(
          Decode(tokenizer, mode == kDecode ? ControlTokens::kSkipped : ControlTokens::kShown));
    } else if (mode == kMarked) {
      Write(tokenizer.EncodeMarked(ReadMarked()));
    } else {
      Write(tokenizer.Encode(ReadText(), mode == kControls ? Tokenizer::Specials::kControl
                                                           : Tokenizer::Specials::kPlain));
    }
  }
}

void TimeFile(const Tokenizer& tokenizer, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  double best_seconds = 1e9;
  std::size_t num_tokens = 0;
  for (int round = 0; round < 10; ++round) {
    const std::clock_t begin = std::clock();
    const auto ids = tokenizer.Encode(text, Tokenizer::Specials::kPlain);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    PAGODA_CHECK_MSG(ids.ok(), ids.status().ToString());
    num_tokens = ids->size();
    best_seconds = std::min(best_seconds, seconds);
  }
  std::printf("%zu bytes, %zu tokens, %.4f s, %.2f MB/s\n", text.size(), num_tokens, best_seconds,
              static_cast<double>(text.size()) / best_seconds / 1e6);
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> LoadTokenizer(const std::string& path) {
  if (path.ends_with(".gguf")) {
    PAGODA_ASSIGN_OR_RETURN(const auto file, formats::GgufFile::Open(path));
    return Tokenizer::FromGguf(*file);
  }
  if (std::filesystem::is_directory(path)) {
    PAGODA_ASSIGN_OR_RETURN(ModelText text, LoadModelText(path, {}));
    return std::move(text.tokenizer);
  }
  const std::optional<Vocabulary> vocabulary = ReadVocabularyFile(path);
  if (!vocabulary.has_value()) return absl::NotFoundError("cannot read " + path);
  return MakeTokenizer(*vocabulary);
}

int Main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "usage: encode_tool VOCABULARY [--time FILE]\n");
    return 2;
  }
  const auto tokenizer = LoadTokenizer(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  if (argc == 4) {
    TimeFile(**tokenizer, argv[3]);
  } else {
    EncodeRecords(**tokenizer);
  }
  return 0;
}

}  // namespace
}  // namespace pagoda::text

int main(int argc, char** argv) { return pagoda::text::Main(argc, argv); }
