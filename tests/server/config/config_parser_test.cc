#include "server/config/config_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace pagoda::server {
namespace {

using testing::HasSubstr;

// A folder with an (empty) model file, which --check-config does not open.
class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::filesystem::create_directories(folder_);
    Write("tiny.gguf", "");
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  absl::StatusOr<ParsedConfig> Parse(std::vector<std::string> arguments,
                                     const Environment& environment = {}) {
    arguments.insert(arguments.begin(), {"--model", (folder_ / "tiny.gguf").string()});
    return ParseConfig(arguments, environment);
  }
  std::string Refusal(const std::vector<std::string>& arguments,
                      const Environment& environment = {}) {
    const auto parsed = Parse(arguments, environment);
    EXPECT_FALSE(parsed.ok());
    return std::string(parsed.status().message());
  }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                  testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ConfigTest, DefaultsAreComplete) {
  const auto parsed = Parse({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.host, "127.0.0.1");
  EXPECT_EQ(parsed->config.port, 8470);
  EXPECT_EQ(parsed->config.max_num_seqs, 64);
  EXPECT_EQ(parsed->config.max_request_bytes, 64 << 20);
  EXPECT_EQ(parsed->config.served_model_name, std::vector<std::string>{"tiny"});
  EXPECT_FALSE(parsed->config.kv_cache_bytes.has_value());
  EXPECT_FALSE(parsed->asks_to_exit);
}

TEST_F(ConfigTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string file = Write("server.conf", "max-num-seqs = 8\nblock-size = 8\nthreads = 3\n");
  const Environment environment = {{"PAGODA_MAX_NUM_SEQS", "16"}, {"PAGODA_BLOCK_SIZE", "32"}};
  const auto parsed = Parse({"--config", file, "--max-num-seqs", "24"}, environment);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.max_num_seqs, 24);
  EXPECT_EQ(parsed->config.block_size, 32);
  EXPECT_EQ(parsed->config.threads, 3);
  EXPECT_EQ(parsed->config.text_threads, 2);
}

TEST_F(ConfigTest, PrintConfigSaysWhereEachValueCameFrom) {
  const std::string file = Write("server.conf", "threads = 3\n");
  const auto parsed = Parse({"--config", file, "--max-num-seqs=24", "--print-config"},
                            {{"PAGODA_BLOCK_SIZE", "32"}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->asks_to_exit);
  EXPECT_THAT(parsed->print, HasSubstr("max-num-seqs = \"24\"  # flag\n"));
  EXPECT_THAT(parsed->print, HasSubstr("block-size = \"32\"  # environment\n"));
  EXPECT_THAT(parsed->print, HasSubstr("threads = \"3\"  # file\n"));
  EXPECT_THAT(parsed->print, HasSubstr("listen = \"127.0.0.1:8470\"  # default\n"));
}

// What was printed is a file that gives the same configuration.
TEST_F(ConfigTest, PrintedConfigCanBeReadBack) {
  const auto printed = Parse({"--max-num-seqs=24", "--anonymous", "--print-config"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  const std::string file = Write("printed.conf", printed->print);
  const auto parsed = ParseConfig(std::vector<std::string>{"--config", file}, {});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.max_num_seqs, 24);
  EXPECT_TRUE(parsed->config.anonymous);
}

// Every key with a value that is not its default.
TEST_F(ConfigTest, WhatIsPrintedOfEveryKeyIsReadBackTheSame) {
  const std::vector<std::string> flags = {"--served-model-name=a b",
                                          "--served-model-name=c\"d",
                                          "--device=emulated-cuda",
                                          "--max-model-len=9",
                                          "--activation-dtype=f32",
                                          "--kv-cache-dtype=f32",
                                          "--threads=3",
                                          "--kv-cache-memory=1.5 GiB",
                                          "--max-num-seqs=7",
                                          "--max-num-batched-tokens=99",
                                          "--block-size=32",
                                          "--max-queued-requests=5",
                                          "--max-queued-tokens=123456789012",
                                          "--cached-block-ttl=0.25",
                                          "--public-prefixes=p 1.conf",
                                          "--text-threads=4",
                                          "--listen=[::1]:0",
                                          "--port-file=port,file",
                                          "--admin-listen=127.0.0.1:1",
                                          "--drain-timeout=1.5",
                                          "--slow-reader-grace=2.5",
                                          "--step-time=0.25",
                                          "--max-request-size=1MiB",
                                          "--min-ping-interval=3.5",
                                          "--journal-dir=/a folder",
                                          "--journal-memory=2MiB",
                                          "--log-level=debug",
                                          "--tls-cert=c.pem",
                                          "--tls-key=k.pem",
                                          "--tls-client-ca=ca.pem",
                                          "--tenants=t.conf",
                                          "--anonymous",
                                          "--print-config"};
  const auto printed = Parse(flags);
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_THAT(printed->print, testing::Not(HasSubstr("default")));
  EXPECT_THAT(printed->print, testing::Not(HasSubstr("\n# ")));
  EXPECT_THAT(printed->print, HasSubstr("served-model-name = [\"a b\", 'c\"d']  # flag\n"));
  const std::string file = Write("printed.conf", printed->print);
  const auto again = ParseConfig(std::vector<std::string>{"--config", file, "--print-config"}, {});
  ASSERT_TRUE(again.ok()) << again.status();
  std::string expected = printed->print;
  for (std::size_t at = 0; (at = expected.find("  # flag", at)) != std::string::npos;) {
    expected.replace(at, 8, "  # file");
  }
  EXPECT_EQ(again->print, expected);
  EXPECT_EQ(again->config.served_model_name, (std::vector<std::string>{"a b", "c\"d"}));
}

TEST_F(ConfigTest, AListIsSeparatedByCommasInTheEnvironmentAndCanStandInAFile) {
  const std::vector<std::string> both = {"a", "b c"};
  const auto parsed = Parse({}, {{"PAGODA_SERVED_MODEL_NAME", "a,b c"}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.served_model_name, both);
  const auto read = Parse({"--config", Write("l.conf", "served-model-name = [\"a\", \"b c\"]\n")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.served_model_name, both);
}

TEST_F(ConfigTest, GrpcIsSilentUnlessTheEnvironmentSaysOtherwise) {
  unsetenv("GRPC_VERBOSITY");
  SilenceTransport();
  EXPECT_STREQ(getenv("GRPC_VERBOSITY"), "NONE");
  setenv("GRPC_VERBOSITY", "debug", 1);
  SilenceTransport();
  EXPECT_STREQ(getenv("GRPC_VERBOSITY"), "debug");
}

TEST_F(ConfigTest, UnknownNamesAreRefusedWhereverTheyStand) {
  EXPECT_THAT(Refusal({"--max-num-seq", "3"}), HasSubstr("--max-num-seq"));
  EXPECT_THAT(Refusal({}, {{"PAGODA_MAX_NUM_SEQ", "3"}}),
              HasSubstr("PAGODA_MAX_NUM_SEQ names no flag"));
  EXPECT_THAT(Refusal({"--config", Write("bad.conf", "max-num-seq = 3\n")}),
              HasSubstr("bad.conf: max-num-seq names no flag"));
}

TEST_F(ConfigTest, ValuesOutOfRangeNameTheFlag) {
  EXPECT_THAT(Refusal({"--max-num-seqs", "0"}), HasSubstr("max-num-seqs"));
  EXPECT_THAT(Refusal({"--block-size", "12"}), HasSubstr("--block-size is 12"));
  EXPECT_THAT(Refusal({"--cached-block-ttl", "-1"}), HasSubstr("cached-block-ttl"));
  EXPECT_THAT(Refusal({"--cached-block-ttl", "31536001"}), HasSubstr("cached-block-ttl"));
  EXPECT_THAT(Refusal({"--journal-memory", "1KiB"}), HasSubstr("--journal-memory is 1KiB"));
  EXPECT_THAT(Refusal({"--journal-memory", "much"}), HasSubstr("--journal-memory"));
  EXPECT_THAT(Refusal({"--journal-dir", "/nowhere"}), HasSubstr("--journal-dir /nowhere is no"));
  EXPECT_THAT(Refusal({"--public-prefixes", "/nowhere/p.conf"}), HasSubstr("--public-prefixes"));
  EXPECT_THAT(Refusal({"--kv-cache-dtype", "fp4"}), HasSubstr("kv-cache-dtype"));
  EXPECT_THAT(Refusal({"--kv-cache-memory", "lots"}), HasSubstr("'lots' is no size"));
  EXPECT_THAT(Refusal({"--max-num-batched-tokens", "64"}), HasSubstr("at least 80"));
}

TEST_F(ConfigTest, ListenIsHostAndPort) {
  for (const std::string listen :
       {"8470", "127.0.0.1:", ":8470", "127.0.0.1:70000", "127.0.0.1:x"}) {
    EXPECT_THAT(Refusal({"--listen", listen}), HasSubstr("write HOST:PORT")) << listen;
  }
  const auto v6 = Parse({"--listen", "[::1]:0"});
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(v6->config.host, "::1");
  EXPECT_EQ(v6->config.port, 0);
}

TEST_F(ConfigTest, AnOpenBindNeedsAWordForIt) {
  EXPECT_THAT(Refusal({"--listen", "0.0.0.0:8470"}), HasSubstr("--anonymous"));
  EXPECT_TRUE(Parse({"--listen", "0.0.0.0:8470", "--anonymous"}).ok());
}

TEST_F(ConfigTest, TlsFlagsBelongTogether) {
  EXPECT_THAT(Refusal({"--tls-cert", Write("cert.pem", "")}), HasSubstr("belong together"));
  EXPECT_THAT(Refusal({"--tls-client-ca", Write("ca.pem", "")}),
              HasSubstr("--tls-client-ca needs"));
  EXPECT_THAT(Refusal({"--tls-cert", "/nowhere/c.pem", "--tls-key", Write("key.pem", "")}),
              HasSubstr("does not exist"));
}

TEST_F(ConfigTest, AMissingModelSaysSo) {
  const auto parsed = ParseConfig(std::vector<std::string>{}, {});
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("--model is missing"));
  const auto absent = ParseConfig(std::vector<std::string>{"--model", "/nowhere/m.gguf"}, {});
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr("/nowhere/m.gguf"));
}

TEST_F(ConfigTest, HelpShowsGroupsAndExits) {
  const auto parsed = Parse({"--help"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->asks_to_exit);
  for (const char* word :
       {"Model", "Capacity", "Serving", "Security", "--kv-cache-memory", "PAGODA_"}) {
    EXPECT_THAT(parsed->print, HasSubstr(word));
  }
  EXPECT_THAT(parsed->print, testing::Not(HasSubstr("[]")));
}

}  // namespace
}  // namespace pagoda::server
