#include "client/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagoda::client {
namespace {

Options Parse(const std::vector<std::string>& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  const auto* early = std::get_if<EarlyExit>(&parsed);
  EXPECT_EQ(early, nullptr) << early->text;
  return early == nullptr ? std::get<Options>(parsed) : Options();
}

EarlyExit Refusal(const std::vector<std::string>& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  const auto* early = std::get_if<EarlyExit>(&parsed);
  EXPECT_NE(early, nullptr);
  return early == nullptr ? EarlyExit() : *early;
}

TEST(Options, EverySamplingAndStopFlagArrives) {
  const Options options = Parse({"generate",
                                 "--prompt",
                                 "hi",
                                 "--temperature",
                                 "0",
                                 "--top-p",
                                 "0.5",
                                 "--top-k",
                                 "-1",
                                 "--min-p",
                                 "0.1",
                                 "--seed",
                                 "18446744073709551615",
                                 "--max-tokens",
                                 "7",
                                 "--min-tokens",
                                 "2",
                                 "--stop",
                                 "a b",
                                 "--stop",
                                 "\n",
                                 "--stop-token-id",
                                 "3",
                                 "--stop-token-id",
                                 "4",
                                 "--ignore-eos",
                                 "--logit-bias",
                                 "5=-1.5",
                                 "--logit-bias",
                                 "6=2",
                                 "--presence-penalty",
                                 "-0.5",
                                 "--frequency-penalty",
                                 "0.25",
                                 "--repetition-penalty",
                                 "1.1",
                                 "--cache-salt",
                                 "",
                                 "--priority",
                                 "-3",
                                 "--skip-reading-prefix-cache",
                                 "--deadline",
                                 "1.5",
                                 "--json",
                                 "--server",
                                 "h:1"});
  EXPECT_EQ(options.command, Command::kGenerate);
  EXPECT_EQ(options.prompt, "hi");
  EXPECT_TRUE(options.skip_reading_prefix_cache);
  EXPECT_EQ(options.sampling.temperature, 0.0f);
  EXPECT_EQ(options.sampling.top_p, 0.5f);
  EXPECT_EQ(options.sampling.top_k, -1);
  EXPECT_EQ(options.sampling.min_p, 0.1f);
  EXPECT_EQ(options.sampling.seed, 18446744073709551615u);
  EXPECT_EQ(options.sampling.presence_penalty, -0.5f);
  EXPECT_EQ(options.sampling.frequency_penalty, 0.25f);
  EXPECT_EQ(options.sampling.repetition_penalty, 1.1f);
  const std::vector<std::pair<std::uint32_t, float>> bias = {{5, -1.5f}, {6, 2.0f}};
  EXPECT_EQ(options.sampling.logit_bias, bias);
  EXPECT_EQ(options.stop.max_tokens, 7);
  EXPECT_EQ(options.stop.min_tokens, 2);
  EXPECT_EQ(options.stop.stop, (std::vector<std::string>{"a b", "\n"}));
  EXPECT_EQ(options.stop.stop_token_ids, (std::vector<std::uint32_t>{3, 4}));
  EXPECT_TRUE(options.stop.ignore_eos);
  EXPECT_EQ(options.cache_salt, "");
  EXPECT_EQ(options.priority, -3);
  EXPECT_EQ(options.deadline_seconds, 1.5);
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.server, "h:1");
}

TEST(Options, WhatIsLeftOutStaysAbsent) {
  const Options options = Parse({"generate", "--prompt-ids", "1,2,3"});
  EXPECT_EQ(options.server, "127.0.0.1:8470");
  EXPECT_EQ(options.prompt_ids, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_FALSE(options.sampling.temperature.has_value());
  EXPECT_FALSE(options.sampling.seed.has_value());
  EXPECT_FALSE(options.stop.max_tokens.has_value());
  EXPECT_FALSE(options.cache_salt.has_value());
  EXPECT_FALSE(options.deadline_seconds.has_value());
}

TEST(Options, MistakesExitWithTheUsageCodeAndNameTheFlag) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "subcommand"},
      {{"generate"}, "exactly one of --prompt"},
      {{"generate", "--prompt", "a", "--prompt-ids", "1"}, "exactly one of --prompt"},
      {{"generate", "--prompt", "a", "--nonsense", "1"}, "--nonsense"},
      {{"generate", "--prompt", "a", "--top-k", "many"}, "--top-k"},
      {{"generate", "--prompt", "a", "--logit-bias", "5"}, "5 is not ID=VALUE"},
      {{"generate", "--prompt", "a", "--logit-bias", "x=1"}, "x=1 is not ID=VALUE"},
      {{"generate", "--prompt-ids", "1,x"}, "--prompt-ids"},
      {{"generate", "--prompt", "a", "--deadline", "-1"}, "--deadline"},
      {{"generate", "--prompt", "a", "--tls-cert", "c"}, "--tls-key"},
      {{"chat", "--json"}, "--message"},
      {{"tokenize"}, "--prompt-file"},
      {{"bogus", "--json"}, "there is no command 'bogus'; there are generate, chat"},
      {{"generate", "--prompt", "a\xff"}, "--prompt is not UTF-8: byte 1 is 0xff"},
      {{"generate", "--prompt", "a", "--stop", "\xc3"}, "--stop is not UTF-8"},
      {{"chat", "--message", "\xff"}, "--message is not UTF-8"},
      {{"generate", "--prompt", "a", "--logprobs", "3"}, "with --json alone"},
      {{"generate", "--prompt", "a", "--prompt-logprobs", "0"}, "with --json alone"},
  };
  for (const auto& [arguments, word] : cases) {
    const EarlyExit refusal = Refusal(arguments);
    EXPECT_EQ(refusal.code, kExitUsage) << word;
    EXPECT_NE(refusal.text.find(word), std::string::npos) << refusal.text;
  }
}

TEST(Options, AWholeNumberOutOfRangeIsRefusedWithTheRange) {
  const auto text = [](const std::vector<std::string>& arguments) {
    const auto parsed = ParseCommandLine(arguments);
    const auto* const exit = std::get_if<EarlyExit>(&parsed);
    return exit != nullptr && exit->code == kExitUsage ? exit->text : "taken";
  };
  using testing::HasSubstr;
  const std::string seeds = "from 0 to 18446744073709551615";
  EXPECT_THAT(text({"generate", "--prompt", "x", "--seed", "-1"}),
              testing::AllOf(HasSubstr("--seed"), HasSubstr("'-1'"), HasSubstr(seeds)));
  EXPECT_THAT(text({"generate", "--prompt", "x", "--seed", "18446744073709551616"}),
              HasSubstr(seeds));
  EXPECT_THAT(text({"bench", "--requests", "1", "--seed", "-5"}), HasSubstr(seeds));
  EXPECT_THAT(text({"generate", "--prompt", "x", "--max-tokens", "99999999999"}),
              HasSubstr("from -2147483648 to 2147483647"));
  EXPECT_THAT(text({"generate", "--prompt-ids", "1,-2"}), HasSubstr("from 0 to 4294967295"));
  EXPECT_THAT(text({"generate", "--prompt", "x", "--stop-token-id", "-1"}),
              HasSubstr("from 0 to 4294967295"));
}

TEST(Options, HelpExitsWithZeroAndSaysTheExitCodes) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, std::vector<std::string>{"generate", "--help"}}) {
    const EarlyExit help = Refusal(arguments);
    EXPECT_EQ(help.code, kExitOk);
    EXPECT_NE(help.text.find("3 no server could be reached"), std::string::npos) << help.text;
  }
  EXPECT_NE(Refusal({"generate", "--help"}).text.find("--stop-token-id"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::client
