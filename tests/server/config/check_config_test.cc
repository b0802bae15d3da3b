#include "server/config/check_config.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace pagoda::server {
namespace {

TEST(CheckConfig, FillsWhatFollowsFromTexts) {
  ServerConfig config;
  config.model = PAGODA_SOURCE_DIR "/CMakeLists.txt";
  config.listen = "localhost:0";
  config.kv_cache_memory = "1MiB";
  ASSERT_TRUE(CheckConfig(config).ok());
  EXPECT_EQ(config.host, "localhost");
  EXPECT_EQ(config.kv_cache_bytes, 1 << 20);
  EXPECT_EQ(config.served_model_name.front(), "CMakeLists");
}

TEST(CheckConfig, AFolderIsServedUnderItsWholeName) {
  const std::string folder = testing::TempDir() + "/Llama-3.2-1B";
  std::filesystem::create_directories(folder);
  for (const char* const ending : {"", "/", "/."}) {
    ServerConfig config;
    config.model = folder + ending;
    config.listen = "localhost:0";
    ASSERT_TRUE(CheckConfig(config).ok());
    EXPECT_EQ(config.served_model_name.front(), "Llama-3.2-1B") << ending;
  }
}

TEST(CheckConfig, AnAgeOfCachedBlocksIsInSecondsAndNoneIsTooShortToCount) {
  ServerConfig config;
  config.model = PAGODA_SOURCE_DIR "/CMakeLists.txt";
  config.cached_block_ttl_s = 1.5;
  ASSERT_TRUE(CheckConfig(config).ok());
  EXPECT_EQ(config.cached_block_ttl_ms, 1500);
  config.cached_block_ttl_s = 0.0004;
  EXPECT_NE(CheckConfig(config).message().find("--cached-block-ttl is 0.0004"),
            absl::string_view::npos)
      << CheckConfig(config);
}

TEST(CheckConfig, TheAdminServiceIsForThisMachineOnly) {
  ServerConfig config;
  config.model = PAGODA_SOURCE_DIR "/CMakeLists.txt";
  config.admin_listen = "127.0.0.1:0";
  EXPECT_TRUE(CheckConfig(config).ok());
  for (const char* listen :
       {"0.0.0.0:8471", "127.0.0.1", "127.0.0.1:x", "127.0.0.1.example:8471"}) {
    config.admin_listen = listen;
    const absl::Status status = CheckConfig(config);
    EXPECT_NE(status.message().find("--admin-listen"), absl::string_view::npos) << listen;
  }
}

}  // namespace
}  // namespace pagoda::server
