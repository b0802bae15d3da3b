#include "client/serve_command.h"

#include <gtest/gtest.h>

namespace pagoda::client {
namespace {

// That a server takes it: tests/process/plan_test.cc.
TEST(ServeCommand, SaysEveryChoiceOfThePlan) {
  const FileOptions file{.path = "my model.gguf", .load = {}, .batch = 3, .memory = {}};
  const PlannedModel model{.config = {},
                           .memory = {.block_size = 16, .max_model_len = 101},
                           .weight_format = "Q4_1",
                           .activation_dtype = "f32"};
  EXPECT_EQ(ServeCommand(file, model, 4096),
            "pagoda-server --model 'my model.gguf' --max-model-len 101 --max-num-seqs 3 "
            "--block-size 16 --activation-dtype f32 --kv-cache-dtype bf16 --kv-cache-memory 4096");
}

TEST(ServeCommand, RaisesTheStepForMoreSequencesThanItsDefaultHolds) {
  FileOptions file{.path = "m", .load = {}, .batch = 496, .memory = {}};
  EXPECT_EQ(ServeCommand(file, {}, 1).find("batched"), std::string::npos);
  file.batch = 497;
  EXPECT_NE(ServeCommand(file, {}, 1).find(" --max-num-batched-tokens 513 "), std::string::npos);
}

TEST(ShellWord, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellWord("/models/tiny-1.Q4_1.gguf"), "/models/tiny-1.Q4_1.gguf");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$(x)"), "'$(x)'");
  EXPECT_EQ(ShellWord("~"), "'~'");
}

}  // namespace
}  // namespace pagoda::client
