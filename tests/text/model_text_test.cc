#include "text/model_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace pagoda::text {
namespace {

using base::TokenId;

// A directory with the tokenizer.json of the Llama-3 rule, whose token 0 goes before every text;
// gone with the object.
class Directory {
 public:
  explicit Directory(const std::string& rule = "llama-bpe")
      : path_(testing::TempDir() + "/model_text_test") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    std::filesystem::copy(PAGODA_SOURCE_DIR "/tests/oracle/goldens/tokenizer_json/" + rule, path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  void Write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ + "/" + name) << content;
  }
  void Remove(const std::string& name) const { std::filesystem::remove(path_ + "/" + name); }
  absl::StatusOr<ModelText> Load(const std::vector<TokenId>& config_eos = {}) const {
    return LoadModelText(path_, config_eos);
  }
  std::string RefusalOf(std::string_view config) const {
    Write("tokenizer_config.json", config);
    const auto text = Load();
    return text.ok() ? "accepted" : std::string(text.status().message());
  }

 private:
  const std::string path_;
};

TEST(ModelText, ADirectoryWithATokenizerAloneIsEnough) {
  const auto text = Directory().Load({2});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->chat_template, "");
  EXPECT_EQ(text->tokenizer->eos_tokens(), std::vector<TokenId>{2});
}

TEST(ModelText, B5_EveryEosOfBothConfigurationsEndsAReply) {
  const Directory directory;
  directory.Write("tokenizer_config.json",
                  R"({"eos_token": {"content": "<|im_end|>", "special": true},
                      "bos_token": "<|endoftext|>", "model_max_length": 8192})");
  const auto text = directory.Load({0, 2});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->tokenizer->eos_tokens(), (std::vector<TokenId>{2, 0}));
  EXPECT_EQ(text->tokenizer->bos_token(), 0u);
}

TEST(ModelText, TheTemplateComesFromItsFileElseTheConfiguration) {
  const Directory directory;
  directory.Write("tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(directory.Load()->chat_template, "one");
  directory.Write("tokenizer_config.json",
                  R"({"chat_template": [{"name": "tool_use", "template": "two"},
                                        {"name": "default", "template": "three"}]})");
  EXPECT_EQ(directory.Load()->chat_template, "three");
  directory.Write("chat_template.jinja", "four");
  EXPECT_EQ(directory.Load()->chat_template, "four");
}

TEST(ModelText, G13_ConfigurationsThatContradictTheTokenizerAreRefused) {
  const Directory directory;
  const std::pair<const char*, const char*> cases[] = {
      {R"({"add_bos_token": false})", "add_bos_token: false, but the tokenizer.json adds a token"},
      {R"({"add_eos_token": true})", "add_eos_token: true is not built"},
      {R"({"add_prefix_space": true})", "add_prefix_space: true is not built"},
      {R"({"bos_token": "<|im_end|>"})", "bos_token: is token 2, but the tokenizer.json adds 0"},
      {R"({"eos_token": "<none>"})", "eos_token: '<none>' is not in the vocabulary"},
      {R"({"eos_token": 7})", "eos_token: 'content' is absent"},
      {R"({"added_tokens_decoder": {"0": {"content": "<x>"}}})", "'<x>' with id 0 is not in"},
      {R"({"chat_template": [{"name": "rag", "template": ""}]})",
       "without one named 'default' (rag)"},
      {R"([])", "expected an object"},
  };
  for (const auto& [config, words] : cases) {
    const std::string refusal = directory.RefusalOf(config);
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("tokenizer_config.json: "), std::string::npos) << refusal;
  }
}

TEST(ModelText, AConfiguredSpaceBeforeATextMustBeTheTokenizersOwn) {
  const Directory directory;
  std::ifstream file(PAGODA_SOURCE_DIR "/tests/oracle/goldens/sentence_piece/tokenizer.json");
  directory.Write("tokenizer.json", std::string{std::istreambuf_iterator<char>(file), {}});
  directory.Write("tokenizer_config.json", R"({"add_prefix_space": true, "eos_token": "</s>"})");
  const auto text = directory.Load();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(text->tokenizer->strips_first_space());
  const std::string refusal = directory.RefusalOf(R"({"add_prefix_space": false})");
  EXPECT_NE(refusal.find("add_prefix_space: false, but the tokenizer.json puts a space before"),
            std::string::npos)
      << refusal;
}

TEST(ModelText, ADirectoryWithoutATokenizerIsRefusedWithThePath) {
  const Directory directory;
  directory.Remove("tokenizer.json");
  const auto text = directory.Load();
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(text.status().message().find("tokenizer.json"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::text
