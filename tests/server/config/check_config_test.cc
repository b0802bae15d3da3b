#include "server/config/check_config.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pagoda::server
