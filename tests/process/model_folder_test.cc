// A model folder (config.json, safetensors whole or in shards, tokenizer.json, a chat template)
// behind the whole server: it answers as transformers does with the same files, and a folder that
// is not whole never serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "tests/process/family_folder.h"
#include "tests/process/server_fixture.h"

namespace pagoda::process {
namespace {

using ::grpc::StatusCode;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kExactFlags = {
    "--activation-dtype", "f32", "--kv-cache-dtype", "f32", "--kv-cache-memory", "4MiB"};
// Greedy ids may part from transformers' only where its two highest logits are this near.
constexpr double kPartingGap = 1e-3;

nlohmann::json GoldenOf(const std::string& family) {
  std::ifstream file(std::string(kFamilies) + "goldens.json");
  const nlohmann::json goldens = nlohmann::json::parse(file);
  for (const auto& model : goldens["models"]) {
    if (model["name"] == family) return model;
  }
  ADD_FAILURE() << "no golden of " << family;
  return {};
}

v1::GenerateRequest Greedy(const std::vector<std::uint32_t>& ids, std::size_t max_tokens) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stop()->set_max_tokens(static_cast<std::int32_t>(max_tokens));
  request.mutable_stop()->set_ignore_eos(true);
  return request;
}

Reply Chat(Server& server, const std::string& words, int max_tokens = 5) {
  v1::ChatRequest request;
  request.add_messages()->set_role("user");
  request.mutable_messages(0)->set_content(words);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stop()->set_max_tokens(max_tokens);
  request.mutable_stop()->set_ignore_eos(true);
  ::grpc::ClientContext context;
  return ReadAll(*server.stub->Chat(&context, request));
}

class ServedFolder : public testing::TestWithParam<const char*> {};

TEST_P(ServedFolder, AnswersAsTransformersDoesColdAndFromTheCache) {
  const nlohmann::json golden = GoldenOf(GetParam());
  const FamilyFolder folder(GetParam());
  Server server(folder.path(), kExactFlags);
  const std::vector<std::uint32_t> greedy = golden["greedy"];
  const auto request = Greedy(golden["ids"], greedy.size());
  const Reply cold = server.Generate(request);
  ASSERT_TRUE(cold.status.ok()) << cold.status.error_message();
  ASSERT_EQ(cold.tokens.size(), greedy.size());
  const auto [ours, theirs] = std::mismatch(cold.tokens.begin(), cold.tokens.end(), greedy.begin());
  if (ours != cold.tokens.end()) {
    const auto place = static_cast<std::size_t>(ours - cold.tokens.begin());
    EXPECT_LT(golden["gaps"][place], kPartingGap) << "parted at token " << place;
  }
  const Reply again = server.Generate(request);
  EXPECT_EQ(again.tokens, cold.tokens);
  EXPECT_EQ(again.text, cold.text);
  EXPECT_GT(again.finish.receipt().cached_tokens(), 300);
}

INSTANTIATE_TEST_SUITE_P(Families, ServedFolder, testing::Values("llama", "mistral", "qwen2"));

TEST(ModelFolder, TextAndChatGoThroughItsOwnTokenizerAndTemplate) {
  const FamilyFolder folder("llama");
  Server server(folder.path(), kExactFlags);
  ::grpc::ClientContext context;
  v1::Model model;
  ASSERT_TRUE(server.stub->GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(model.vocabulary_size(), 256u);
  EXPECT_TRUE(model.has_chat_template());
  EXPECT_THAT(model.eos_token_ids(), testing::ElementsAre(2u));
  const std::string rendered = "user: Na\u00efve?\n";
  const std::vector<std::uint32_t> ids = [&rendered] {
    std::vector<std::uint32_t> bytes;
    for (const char c : rendered) bytes.push_back(static_cast<std::uint8_t>(c));
    return bytes;
  }();
  const Reply from_ids = server.Generate(Greedy(ids, 5));
  v1::GenerateRequest text = Greedy({}, 5);
  text.set_text(rendered);
  const Reply from_text = server.Generate(text);
  const Reply from_chat = Chat(server, "Na\u00efve?");
  ASSERT_TRUE(from_chat.status.ok()) << from_chat.status.error_message();
  EXPECT_EQ(from_ids.tokens.size(), 5u);
  EXPECT_EQ(from_text.tokens, from_ids.tokens);
  EXPECT_EQ(from_chat.tokens, from_ids.tokens);
  EXPECT_EQ(from_chat.finish.receipt().prompt_tokens(), static_cast<int>(ids.size()));
}

// Tools reach the template as they were written; a template without a place for them says so.
TEST(ModelFolder, ToolsReachTheTemplateOrAreRefused) {
  const FamilyFolder folder("llama",
                            "{% if tools %}{{ tools | tojson }}{% endif %}"
                            "{% for message in messages %}{% if message.tool_calls %}"
                            "[{{ message.tool_calls[0].name }}]{% else %}{{ message.content }}"
                            "{% endif %}{% endfor %}{{ date_string }}");
  Server server(folder.path(), kExactFlags);
  v1::TokenizeRequest request;
  v1::ChatMessages& chat = *request.mutable_chat();
  chat.add_messages()->set_role("user");
  chat.mutable_messages(0)->set_content("ask ");
  chat.add_messages()->set_role("assistant");
  chat.mutable_messages(1)->set_fields_json(
      R"({"content": null, "tool_calls": [{"name": "weather"}]})");
  chat.add_tools_json(R"({"name": "weather", "a": {"z": 1, "b": [true]}})");
  chat.set_template_variables_json(R"({"date_string": "today"})");
  v1::TokenizeResponse response;
  ::grpc::ClientContext first, second;
  const ::grpc::Status status = server.stub->Tokenize(&first, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.rendered_text(),
            R"([{"name": "weather", "a": {"z": 1, "b": [true]}}]ask [weather]today)");
  chat.set_template_variables_json(R"({"no_such_name": 1})");
  const ::grpc::Status refused = server.stub->Tokenize(&second, request, &response);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("template_variables_json: the model's chat"));
}

// What refuses the conversation is the caller's to mend, what fails is not; the server goes on.
TEST(ModelFolder, G14_ATemplateThatRaisesOrLoopsEndsTheCallWithItsReason) {
  const FamilyFolder folder("llama",
                            "{% if messages[0].content == 'loop' %}"
                            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}"
                            "{% endfor %}{% endif %}"
                            "{% if messages[0].content == 'raise' %}"
                            "{{ raise_exception('Roles must alternate!') }}{% endif %}fine");
  Server server(folder.path(), kExactFlags);
  const Reply raised = Chat(server, "raise");
  EXPECT_EQ(raised.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(raised.status.error_message(), HasSubstr("Roles must alternate!"));
  const Reply looped = Chat(server, "loop");
  EXPECT_EQ(looped.status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(looped.status.error_message(),
              HasSubstr("chat template, line 1: the rendering passes kMaxWorkingBytes"));
  EXPECT_TRUE(Chat(server, "neither").status.ok());
}

// A change to a sound folder, and the words with which a start then ends.
struct Fault {
  std::string name;
  std::function<void(const FamilyFolder&)> make;
  std::vector<std::string> words;
};

void SetEntry(const FamilyFolder& folder, const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = folder.Read("config.json");
  config[key] = value;
  folder.Write("config.json", config.dump());
}

constexpr char kFirst[] = "model-00001-of-00002.safetensors";
constexpr char kSecond[] = "model-00002-of-00002.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

std::vector<Fault> FaultsOfWeights() {
  namespace fs = std::filesystem;
  return {
      {"a shard is missing",
       [](const FamilyFolder& f) { fs::remove(f.PathOf(kSecond)); },
       {kSecond}},
      {"a shard is cut",
       [](const FamilyFolder& f) {
         fs::resize_file(f.PathOf(kFirst), fs::file_size(f.PathOf(kFirst)) - 1000);
       },
       {kFirst, "bytes"}},
      {"a shard is too long",
       [](const FamilyFolder& f) {
         fs::resize_file(f.PathOf(kFirst), fs::file_size(f.PathOf(kFirst)) + 7);
       },
       {kFirst, "bytes"}},
      {"a shard is doubled",
       [](const FamilyFolder& f) {
         fs::copy_file(f.PathOf(kSecond), f.PathOf(kFirst), fs::copy_options::overwrite_existing);
       },
       {kFirst}},
      {"a shard is stray",
       [](const FamilyFolder& f) {
         fs::copy_file(f.PathOf(kFirst), f.PathOf("model-00003-of-00003.safetensors"));
       },
       {"model-00003-of-00003.safetensors"}},
      {"the index lies",
       [](const FamilyFolder& f) {
         nlohmann::json index = f.Read(kIndex);
         index["weight_map"]["model.norm.weight"] =
             index["weight_map"]["model.norm.weight"] == kFirst ? kSecond : kFirst;
         f.Write(kIndex, index.dump());
       },
       {"model.norm.weight"}},
      {"a head of its own is said to be the embedding",
       [](const FamilyFolder& f) { SetEntry(f, "tie_word_embeddings", true); },
       {"'lm_head.weight' differs from 'model.embed_tokens.weight'"}},
  };
}

std::vector<Fault> FaultsOfConfiguration() {
  return {
      {"the architecture is unknown",
       [](const FamilyFolder& f) { SetEntry(f, "model_type", "gemma2"); },
       {"model_type", "gemma2"}},
      {"the RoPE type is unknown",
       [](const FamilyFolder& f) {
         SetEntry(f, "rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}});
       },
       {"rope_type", "yarn"}},
      {"an entry that changes the mathematics is unknown",
       [](const FamilyFolder& f) { SetEntry(f, "logit_scale", 0.0625); },
       {"logit_scale"}},
      {"a size does not fit the tensors",
       [](const FamilyFolder& f) { SetEntry(f, "intermediate_size", 96); },
       {"mlp"}},
      {"the template needs what is not there",
       [](const FamilyFolder& f) {
         f.Write("chat_template.jinja", "{{ messages | no_such_filter }}");
       },
       {"no_such_filter", "line 1", "the chat template"}},
      {"the template loops for ever",
       [](const FamilyFolder& f) {
         f.Write("chat_template.jinja",
                 "\n{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}");
       },
       {"chat template, line 2: the rendering passes kMaxWorkingBytes", "the chat template"}},
      {"the template fails at every conversation",
       [](const FamilyFolder& f) { f.Write("chat_template.jinja", "{{ 'To ' + whom }}"); },
       {"chat template, line 1: 'whom' is undefined"}},
      {"there is no config.json",
       [](const FamilyFolder& f) { std::filesystem::remove(f.PathOf("config.json")); },
       {"without a config.json"}},
      {"the tokenizer is cut",
       [](const FamilyFolder& f) {
         f.Write("tokenizer.json", ByteTokenizer().dump().substr(0, 900));
       },
       {"tokenizer.json"}},
  };
}

void ExpectNeverServed(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    const FamilyFolder folder("llama");
    fault.make(folder);
    ServerProcess process({"--model", folder.path(), "--kv-cache-memory", "4MiB"});
    EXPECT_EQ(process.Wait(), 1);
    process.WaitForLog("this text never comes");
    EXPECT_THAT(process.log(), Not(HasSubstr("serving ")));
    ServerProcess check({"--model", folder.path(), "--check-config"});
    EXPECT_EQ(check.Wait(), 1);
    check.WaitForLog("this text never comes");
    for (const std::string& word : fault.words) {
      EXPECT_THAT(process.log(), HasSubstr(word));
      EXPECT_THAT(check.log(), HasSubstr(word));
    }
  }
}

// Row G1, and what else can be wrong with shards.
TEST(ModelFolder, G1_WithoutExactlyItsShardsNeverServes) { ExpectNeverServed(FaultsOfWeights()); }

TEST(ModelFolder, WithAnythingThatIsNotUnderstoodNeverServes) {
  ExpectNeverServed(FaultsOfConfiguration());
}

}  // namespace
}  // namespace pagoda::process
