#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fixtures/fixture_tokenizer.h"

// The small models that transformers made (tests/oracle/families), with the text files that a
// server needs beside the weights.
namespace pagoda::process {

inline constexpr char kFamilies[] = PAGODA_SOURCE_DIR "/tests/oracle/families/";

// A vocabulary of the 256 bytes alone, each with its own value as id, split as GPT-2 does.
inline nlohmann::json ByteTokenizer() {
  nlohmann::json vocab = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[fixtures::SpellBytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  const nlohmann::json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  return {{"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
}

// A copy of a family's folder that can be served and changed; removed at the end.
class FamilyFolder {
 public:
  explicit FamilyFolder(
      const std::string& family,
      const std::string& chat_template =
          "{% for message in messages %}{{ message.role + ': ' + message.content + '\\n' }}"
          "{% endfor %}")
      : path_(std::filesystem::path(testing::TempDir()) /
              (std::to_string(getpid()) + "-family-" + family)) {
    std::filesystem::remove_all(path_);
    std::filesystem::copy(kFamilies + family, path_);
    Write("tokenizer.json", ByteTokenizer().dump());
    const nlohmann::json config = {{"chat_template", chat_template}};
    Write("tokenizer_config.json", config.dump());
  }
  ~FamilyFolder() { std::filesystem::remove_all(path_); }
  FamilyFolder(const FamilyFolder&) = delete;
  FamilyFolder& operator=(const FamilyFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string PathOf(const std::string& name) const { return (path_ / name).string(); }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name) << content;
  }
  nlohmann::json Read(const std::string& name) const {
    std::ifstream file(path_ / name);
    return nlohmann::json::parse(file);
  }

 private:
  const std::filesystem::path path_;
};

}  // namespace pagoda::process
