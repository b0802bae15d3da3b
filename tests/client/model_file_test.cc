// The commands that read a model file: inspect and plan.
#include "client/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/client/command_session.h"
#include "tests/fixtures/tiny_folder.h"
#include "tests/fixtures/tiny_model.h"
#include "tests/process/family_folder.h"

namespace pagoda::client {
namespace {

using fixtures::TinyOptions;
using testing::HasSubstr;
using testing::Not;

std::int64_t Rows(const process::FamilyFolder& folder) {
  return folder.Read("config.json")["vocab_size"].get<std::int64_t>();
}

class ModelFileTest : public testing::Test {
 protected:
  ModelFileTest() { Write({}); }
  ~ModelFileTest() override { std::filesystem::remove(path_); }

  void Write(const TinyOptions& options) {
    const absl::Status written = fixtures::WriteTinyGguf(path_, options);
    ASSERT_TRUE(written.ok()) << written;
  }
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, path_);
    session_.out_buffer.str("");
    session_.err.str("");
    return session_.Run(arguments);
  }
  nlohmann::json Json(std::vector<std::string> arguments, int code = kExitOk) {
    arguments.emplace_back("--json");
    EXPECT_EQ(Run(std::move(arguments)), code) << session_.text();
    return nlohmann::json::parse(session_.text());
  }

  const std::string path_ = fixtures::TemporaryPath("inspected.gguf");
  CommandSession session_;
};

TEST_F(ModelFileTest, InspectShowsWhatAPersonAsksFirst) {
  EXPECT_EQ(Run({"inspect"}), kExitOk);
  const std::string text = session_.text();
  EXPECT_THAT(text, HasSubstr("Architecture   llama"));
  EXPECT_THAT(text, HasSubstr("Layers         2, hidden 64"));
  EXPECT_THAT(text, HasSubstr("4 query and 2 KV heads of 32"));
  EXPECT_THAT(text, HasSubstr("the head is the embedding"));
  EXPECT_THAT(text, HasSubstr("512 bytes in bf16"));
  EXPECT_THAT(text, HasSubstr("512 tokens; BOS 1"));
  EXPECT_THAT(text, HasSubstr("Chat template  yes"));
  EXPECT_THAT(text, HasSubstr("Q8_0: 1 tensor, "));
  EXPECT_THAT(text, Not(HasSubstr("token_embd.weight")));
  EXPECT_EQ(Run({"inspect", "--tensors"}), kExitOk);
  EXPECT_THAT(session_.text(), HasSubstr("token_embd.weight  Q8_0 [576, 64]"));
}

TEST_F(ModelFileTest, InspectCountsBytesByTypeAndInAll) {
  const auto json = Json({"inspect", "--tensors"});
  std::int64_t by_type = 0, by_tensor = 0;
  for (const auto& share : json["tensor_types"]) by_type += share["bytes"].get<std::int64_t>();
  for (const auto& tensor : json["tensors"]) by_tensor += tensor["bytes"].get<std::int64_t>();
  EXPECT_EQ(by_type, by_tensor);
  // The most bytes first; the embedding is 576 rows of 64 in 34 bytes per 32.
  EXPECT_EQ(json["tensor_types"][0]["type"], "Q4_1");
  EXPECT_EQ(json["tensor_types"][1]["type"], "Q8_0");
  EXPECT_EQ(json["tensor_types"][1]["bytes"], 576 * 2 * 34);
  EXPECT_EQ(json["file_bytes"], std::filesystem::file_size(path_));
  EXPECT_TRUE(json["refused"].is_null());
  EXPECT_EQ(json["model"]["kv_bytes_per_token"], 512);
}

TEST_F(ModelFileTest, InspectShowsAFileThatWouldBeRefusedAndSaysWhy) {
  Write({.without_tensor = "blk.1.ffn_up.weight"});
  EXPECT_EQ(Run({"inspect"}), kExitFailed);
  EXPECT_THAT(session_.text(), HasSubstr("refused: "));
  EXPECT_THAT(session_.text(), HasSubstr("'blk.1.ffn_up.weight' is missing"));
  const auto json = Json({"inspect"}, kExitFailed);
  EXPECT_THAT(json["refused"].get<std::string>(), HasSubstr("is missing"));
  EXPECT_FALSE(json.contains("model"));
}

TEST_F(ModelFileTest, ABrokenFileIsAnErrorWithItsName) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 100);
  EXPECT_EQ(Run({"inspect"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr(path_));
  EXPECT_EQ(Json({"plan"}, kExitFailed)["error"]["code"], "INVALID_ARGUMENT");
  std::filesystem::remove(path_);
  EXPECT_EQ(Json({"inspect"}, kExitFailed)["error"]["code"], "NOT_FOUND");
}

TEST_F(ModelFileTest, PlanPrintsATableAndTheCommandThatServesIt) {
  EXPECT_EQ(
      Run({"plan", "--context", "101", "--batch", "3", "--block-size", "4", "--memory", "1GiB"}),
      kExitOk);
  const std::string text = session_.text();
  EXPECT_THAT(text, HasSubstr("3 requests of 101 tokens at once, KV in bf16, blocks of 4 tokens"));
  EXPECT_THAT(text, HasSubstr("25 blocks of 2,048 bytes"));
  EXPECT_THAT(text, HasSubstr("76 blocks, the null block included"));
  EXPECT_THAT(text, HasSubstr("256 tokens, the model's own limit"));
  EXPECT_THAT(text,
              HasSubstr("--max-model-len 101 --max-num-seqs 3 --block-size 4 --activation-dtype "
                        "int8 --kv-cache-dtype bf16 --kv-cache-memory 155648"));
}

TEST_F(ModelFileTest, PlanOffersNoCommandForWordsThatAServerRefuses) {
  const auto answer = [this](const process::FamilyFolder& folder) {
    session_.out_buffer.str("");
    EXPECT_EQ(session_.Run({"plan", folder.path(), "--memory", "1GiB"}), kExitOk);
    return session_.text();
  };
  EXPECT_THAT(answer(process::FamilyFolder("qwen2")), HasSubstr("Serve it: "));
  const std::string refused = answer(process::FamilyFolder("qwen2", "{% no_such_statement %}"));
  EXPECT_THAT(refused, Not(HasSubstr("Serve it")));
  EXPECT_THAT(refused, HasSubstr("It would not be served: "));
}

TEST_F(ModelFileTest, PlanOffersNoCommandForMoreTokensThanTheEmbeddingHasRows) {
  const process::FamilyFolder folder("qwen2");
  const std::int64_t rows = Rows(folder);
  nlohmann::json tokenizer = process::ByteTokenizer();
  for (std::int64_t id = 256; id <= rows; ++id) {
    tokenizer["added_tokens"].push_back({{"id", id},
                                         {"content", "<x" + std::to_string(id) + ">"},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", false},
                                         {"special", true}});
  }
  folder.Write("tokenizer.json", tokenizer.dump());
  EXPECT_EQ(session_.Run({"plan", folder.path(), "--memory", "1GiB"}), kExitOk);
  EXPECT_THAT(session_.text(), Not(HasSubstr("Serve it")));
  EXPECT_THAT(session_.text(), HasSubstr("It would not be served: a tokenizer of " +
                                         std::to_string(rows + 1) + " tokens"));
}

TEST_F(ModelFileTest, TheLargestBatchIsWhatAServerRunsAndSaysSo) {
  EXPECT_EQ(Run({"plan", "--memory", "4TiB"}), kExitOk);
  EXPECT_THAT(session_.text(), HasSubstr("4,096 requests, a server's limit"));
}

TEST_F(ModelFileTest, PlanThatCannotFitSaysWhatIsMissingAndExitsWithAnError) {
  EXPECT_EQ(Run({"plan", "--batch", "64", "--memory", "1MiB"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("are missing"));
  EXPECT_THAT(session_.err.str(), HasSubstr("To do: use --batch "));
  const auto json = Json({"plan", "--batch", "64", "--memory", "1MiB"}, kExitFailed);
  EXPECT_EQ(json["fits"], false);
  EXPECT_LT(json["free_bytes"], 0);
  EXPECT_EQ(json["error"]["code"], "RESOURCE_EXHAUSTED");
  // It keeps its word: what it offers fits, and one more does not.
  const std::int64_t batch = json["largest_batch"], context = json["longest_context"];
  const auto fits = [&](std::int64_t requests, std::int64_t tokens) {
    return Run({"plan", "--memory", "1MiB", "--batch", std::to_string(requests), "--context",
                std::to_string(tokens)}) == kExitOk;
  };
  EXPECT_TRUE(fits(batch, 256));
  EXPECT_FALSE(fits(batch + 1, 256));
  EXPECT_TRUE(fits(64, context));
  EXPECT_FALSE(fits(64, context + 1));
  EXPECT_EQ(Run({"plan", "--memory", "1KiB"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("the weights alone take"));
  const std::int64_t weights = json["weight_bytes"];
  EXPECT_EQ(Run({"plan", "--memory", std::to_string(weights + 100)}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("have no room for a block each"));
}

TEST_F(ModelFileTest, InspectSpellsHowPositionsTurn) {
  const std::pair<const char*, const char*> lines[] = {
      {"qwen2", "RoPE base 1,000,000\n"},
      {"linear-scaling", ", positions divided by "},
      {"llama3-scaling", ", low frequencies slowed by "}};
  for (const auto& [family, words] : lines) {
    session_.out_buffer.str("");
    const process::FamilyFolder folder(family);
    EXPECT_EQ(session_.Run({"inspect", folder.path()}), kExitOk) << family;
    EXPECT_THAT(session_.text(), HasSubstr(words));
  }
}

TEST_F(ModelFileTest, AFileThatIsNotThereIsAMatterOfItsPath) {
  EXPECT_EQ(session_.Run({"inspect", "no/such/file.gguf"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("To do: check the path"));
}

TEST_F(ModelFileTest, PlanRefusesWhatTheServerWouldRefuse) {
  EXPECT_EQ(Run({"plan", "--context", "257"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("the model was made for 1 to 256"));
}

TEST_F(ModelFileTest, PlanRefusesAGpuTheKeysAndValuesThatItsBackendLacks) {
  EXPECT_EQ(Run({"plan", "--target", "l4", "--kv-cache-dtype", "f32"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("has no KV type f32; it has bf16"));
}

TEST_F(ModelFileTest, PlanRefusesHeadsThatTheTargetsKernelsLackAsAStartDoes) {
  Write({.head_size = 48});
  EXPECT_EQ(Run({"plan"}), kExitOk);
  EXPECT_EQ(Run({"plan", "--target", "l4"}), kExitFailed);
  EXPECT_THAT(session_.err.str(),
              HasSubstr("the cuda backend has no head size 48; it has 32, 64, 96, 128, 256"));
  Write({.head_size = 40});
  EXPECT_EQ(Run({"plan"}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("the cpu backend has no head size 40; it has 16, 32"));
}

// Twenty batches, so that the nearest tenth of a mebibyte would be too little for about half.
TEST_F(ModelFileTest, TheMemoryThatAPlanAdvisesIsEnough) {
  for (int batch = 64; batch < 84; ++batch) {
    const std::string size = std::to_string(batch);
    ASSERT_EQ(Run({"plan", "--memory", "1MiB", "--batch", size}), kExitFailed);
    const std::string error = session_.err.str(), before = "or give ";
    const std::size_t begin = error.find(before) + before.size();
    const std::string advised = error.substr(begin, error.find(" with --memory") - begin);
    EXPECT_EQ(Run({"plan", "--memory", advised, "--batch", size}), kExitOk) << error;
  }
}

TEST_F(ModelFileTest, WhatAPlanCannotMeanIsAMistakeOnTheCommandLine) {
  const auto mistake = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "plan");
    EXPECT_EQ(Run(flags), kExitUsage) << flags[1];
    return session_.err.str();
  };
  EXPECT_THAT(mistake({"--kv-cache-dtype", "fp8"}), HasSubstr("--kv-cache-dtype"));
  EXPECT_THAT(mistake({"--memory", "much"}), HasSubstr("'much' is no size"));
  EXPECT_THAT(mistake({"--target", "abacus"}), HasSubstr("or one of a10, "));
  EXPECT_THAT(mistake({"--target", "gpu"}), HasSubstr("--target 80GiB"));
  EXPECT_THAT(mistake({"--activation-dtype", "bf16"}), HasSubstr("it has auto, int8 and f32"));
  EXPECT_THAT(mistake({"--target", "l4", "--activation-dtype", "int8"}),
              HasSubstr("it has auto and bf16"));
}

TEST_F(ModelFileTest, AGpuOfASizeIsPlannedLikeANamedOneOfThatMemory) {
  auto named = Json({"plan", "--target", "RTX-4090"});
  auto sized = Json({"plan", "--target", "24GiB"});
  EXPECT_EQ(sized["target"], "GPU of 24.0 GiB");
  sized["target"] = named["target"];
  EXPECT_EQ(sized, named);
  auto given = Json({"plan", "--target", "gpu", "--memory", "1GiB", "--activation-dtype", "bf16"});
  EXPECT_EQ(given["weight_bytes"], named["weight_bytes"]);
  EXPECT_EQ(given["memory_bytes"], 1 << 30);
}

// Matrices of TINY by its shapes: an embedding of 576 x 64, packed again as the head, and per layer
// Q 128, K and V 64, gate and up and down as wide as the file says.
TEST_F(ModelFileTest, AGpuIsPlannedInBf16) {
  const auto facts = ReadModelFacts(path_);
  ASSERT_TRUE(facts.ok() && facts->planned.ok());
  const std::int64_t wide = facts->planned->config.feed_forward_size;
  const std::int64_t layer = 64 * (128 + 64 + 64) + 128 * 64 + 3 * 64 * wide;
  const auto json = Json({"plan", "--target", "rtx-4090"});
  EXPECT_EQ(json["weight_bytes"], 2 * (2 * 576 * 64 + 2 * layer));
  EXPECT_EQ(json["memory_bytes"], 23'192'823'398);
  EXPECT_EQ(json["target_is_built"], false);
  EXPECT_EQ(Json({"plan", "--target", "rtx-4090", "--memory", "1GiB"})["memory_bytes"], 1 << 30);
}

TEST_F(ModelFileTest, InspectShowsAFolderThatWouldBeRefusedAndSaysWhy) {
  const std::string folder = fixtures::TemporaryPath("inspected-refused-folder");
  ASSERT_TRUE(fixtures::WriteTinyFolder(folder, {.family = "qwen2"}).ok());
  const std::string path = folder + "/config.json";
  std::ifstream in(path);
  nlohmann::json config = nlohmann::json::parse(in);
  config["attention_sink_size"] = 4;
  std::ofstream(path) << config;
  ASSERT_EQ(session_.Run({"inspect", folder}), kExitFailed);
  EXPECT_THAT(session_.text(), HasSubstr("Architecture   qwen2"));
  EXPECT_THAT(session_.text(), HasSubstr("refused: "));
  EXPECT_THAT(session_.text(), HasSubstr("attention_sink_size"));
  EXPECT_THAT(session_.text(), Not(HasSubstr("Tensors        0")));
  std::ofstream(path) << "{";  // nothing can be read of it any more
  EXPECT_EQ(session_.Run({"inspect", folder}), kExitFailed);
  EXPECT_THAT(session_.err.str(), HasSubstr("To do: mend or replace the file"));
  std::filesystem::remove_all(folder);
}

TEST_F(ModelFileTest, InspectShowsTheTemplateOfAFolderWhoseTokenizerIsRefused) {
  const std::string folder = fixtures::TemporaryPath("inspected-without-tokenizer");
  ASSERT_TRUE(fixtures::WriteTinyFolder(folder, {.family = "qwen2"}).ok());
  std::ofstream(folder + "/tokenizer.json") << "{}";
  for (const char* const place : {"tokenizer_config.json", "chat_template.jinja"}) {
    std::filesystem::remove(folder + "/tokenizer_config.json");
    std::ofstream(folder + "/" + place)
        << (std::string_view(place).ends_with("json") ? R"({"chat_template": "{{ bos_token }}"})"
                                                      : "{{ bos_token }}");
    session_.out_buffer.str("");
    EXPECT_EQ(session_.Run({"inspect", folder}), kExitFailed);
    EXPECT_THAT(session_.text(), HasSubstr("Chat template  yes, 15 bytes\n")) << place;
  }
  std::filesystem::remove_all(folder);
}

TEST_F(ModelFileTest, WhatIsNoModelFileIsAnsweredWithWhatToDo) {
  const auto todo = [this](std::string_view content) {
    std::ofstream(path_) << content;
    EXPECT_EQ(Run({"inspect"}), kExitFailed);
    return session_.err.str();
  };
  EXPECT_THAT(todo("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("To do: do as the message says"));
  EXPECT_THAT(todo("<html>"), HasSubstr("it is a web page; fetch the file itself"));
  EXPECT_THAT(todo(""), HasSubstr("is empty; fetch the file again"));
}

// A name from a file neither begins a line of its own nor commands the terminal.
TEST_F(ModelFileTest, WhatAFileCallsItselfStaysInItsLine) {
  std::ostringstream read;
  read << std::ifstream(path_, std::ios::binary).rdbuf();
  std::string content = read.str();
  const std::size_t key = content.find("general.name");
  ASSERT_NE(key, std::string::npos);
  content.replace(content.find("tiny", key), 4, "x\n\x1b[");
  std::ofstream(path_, std::ios::binary) << content;
  EXPECT_EQ(Run({"inspect"}), kExitOk);
  EXPECT_THAT(session_.text(), HasSubstr("Name           x\\x0a\\x1b[\n"));
}

// The same sizes as TINY, from config.json: 2 layers, 2 KV heads of 32.
TEST_F(ModelFileTest, AFolderIsInspectedAndPlannedLikeAFile) {
  const std::string folder = fixtures::TemporaryPath("inspected-folder");
  ASSERT_TRUE(fixtures::WriteTinyFolder(folder, {.family = "qwen2"}).ok());
  std::ofstream(folder + "/tokenizer.json") << process::ByteTokenizer().dump();
  ASSERT_EQ(session_.Run({"inspect", folder}), kExitOk) << session_.err.str();
  EXPECT_THAT(session_.text(), HasSubstr("folder of safetensors"));
  EXPECT_THAT(session_.text(), HasSubstr("Architecture   qwen2"));
  EXPECT_THAT(session_.text(), HasSubstr("512 bytes in bf16"));
  EXPECT_THAT(session_.text(), HasSubstr("tokenizer.json, split rule "));
  session_.out_buffer.str("");
  ASSERT_EQ(session_.Run({"plan", folder, "--memory", "1GiB", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(session_.text())["kv_bytes_per_token"], 512);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(session_.Run({"inspect", folder}), kExitFailed);
}

}  // namespace
}  // namespace pagoda::client
