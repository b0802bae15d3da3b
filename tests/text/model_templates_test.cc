// Published chat templates against jinja2: see tests/text/templates/README.md.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/chat_template.h"

namespace pagoda::text {
namespace {

using Json = nlohmann::ordered_json;  // the order of entries shows in what a template writes

std::string ReadFile(const std::string& path) {
  std::ifstream file(PAGODA_SOURCE_DIR "/tests/text/" + path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<ChatMessage> Messages(const Json& list) {
  std::vector<ChatMessage> messages;
  for (const Json& entries : list) {
    ChatMessage message{.role = entries["role"], .content = {}};
    Json fields = entries;
    fields.erase("role");
    if (fields["content"].is_string()) {
      message.content = fields["content"].get<std::string>();
      fields.erase("content");
    }
    if (!fields.empty()) message.fields_json = fields.dump();
    messages.push_back(std::move(message));
  }
  return messages;
}

void Compare(const ChatTemplate& parsed, const Json& golden, const Json& each) {
  const ChatTemplateOptions options{.add_generation_prompt = each["add_generation_prompt"],
                                    .bos_token = golden["bos_token"],
                                    .eos_token = golden["eos_token"],
                                    .variables_json = each["variables"].dump()};
  const auto rendered = parsed.Render(Messages(each["messages"]), options);
  if (each.contains("output")) {
    ASSERT_TRUE(rendered.ok()) << rendered.status() << "\n" << each;
    EXPECT_EQ(rendered->Joined(), each["output"].get<std::string>()) << each["messages"];
    return;
  }
  ASSERT_FALSE(rendered.ok()) << each << "\ngave " << rendered->Joined();
  EXPECT_NE(rendered.status().message().find(each["fails"].get<std::string>()), std::string::npos)
      << rendered.status() << "\n"
      << each;
}

class ModelTemplate : public testing::TestWithParam<std::string> {};

TEST_P(ModelTemplate, EqualsJinja2OnEveryConversationAndRefusesWhatItRefuses) {
  const auto parsed = ChatTemplate::Parse(ReadFile("templates/" + GetParam() + ".jinja"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Json golden = Json::parse(ReadFile("goldens/chat_" + GetParam() + ".json"));
  ASSERT_GE(golden["cases"].size(), 30u);
  for (const Json& each : golden["cases"]) Compare(**parsed, golden, each);
}

INSTANTIATE_TEST_SUITE_P(Published, ModelTemplate,
                         testing::Values("llama-2", "llama-3.0", "llama-3.1", "qwen2", "qwen2.5",
                                         "mistral-v1", "mistral-v3", "smollm2", "zephyr", "chatml"),
                         [](const auto& named) {
                           std::string name = named.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace pagoda::text
