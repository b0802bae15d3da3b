#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.h"
#include "tests/fakes/piece_tokenizer.h"

namespace pagoda::text {
namespace {

nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream file(std::string(PAGODA_SOURCE_DIR "/tests/text/goldens/") + name);
  EXPECT_TRUE(file.good()) << name;
  return nlohmann::json::parse(file);
}

std::vector<ChatMessage> Messages(const nlohmann::json& list) {
  std::vector<ChatMessage> messages;
  for (const auto& message : list) messages.push_back({message["role"], message["content"]});
  return messages;
}

absl::StatusOr<MarkedText> RenderMarked(std::string_view source,
                                        const std::vector<ChatMessage>& messages = {},
                                        const ChatTemplateOptions& options = {}) {
  const auto parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render(messages, options);
}

std::string Render(std::string_view source, const std::vector<ChatMessage>& messages = {},
                   const ChatTemplateOptions& options = {}) {
  const auto rendered = RenderMarked(source, messages, options);
  return rendered.ok() ? rendered->Joined() : std::string(rendered.status().message());
}

std::string ParseError(std::string_view source) {
  const auto parsed = ChatTemplate::Parse(source);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << source;
  return std::string(parsed.status().message());
}

// The bytes of a rendering that the caller sent.
std::string InputBytes(const MarkedText& text) {
  std::string bytes;
  for (const auto& part : text.parts) bytes += part.from_input ? part.text : "";
  return bytes;
}

TEST(ChatTemplate, EqualsJinja2OnEverySmallTemplateAndRefusesWhatItRefuses) {
  const nlohmann::json golden = ReadGolden("jinja_expressions.json");
  const std::vector<ChatMessage> messages = Messages(golden["messages"]);
  const ChatTemplateOptions options{.add_generation_prompt = true,
                                    .bos_token = golden["bos_token"],
                                    .eos_token = golden["eos_token"],
                                    .unix_seconds = golden["unix_seconds"]};
  ASSERT_GT(golden["cases"].size(), 2000u);
  std::size_t num_lists_written =
      0;  // the one thing refused on purpose: Python's spelling of a list
  for (const auto& each : golden["cases"]) {
    const auto source = each[0].get<std::string>();
    const auto rendered = RenderMarked(source, messages, options);
    if (each[1].is_null()) {
      EXPECT_FALSE(rendered.ok()) << source << " gave " << rendered->Joined();
    } else if (rendered.ok()) {
      EXPECT_EQ(rendered->Joined(), each[1].get<std::string>()) << source;
    } else if (rendered.status().message().find("cannot be written as text") != std::string::npos) {
      ++num_lists_written;
    } else {
      ADD_FAILURE() << source << " gave " << rendered.status() << " instead of " << each[1];
    }
  }
  EXPECT_EQ(num_lists_written, 49u);
}

// --- G13: one BOS ---

constexpr std::string_view kBosTemplate =
    "{{ bos_token }}{% for message in messages %}{{ message.content }}{% endfor %}";

TEST(ChatTemplate, G13_ATemplateThatWritesBosGivesItOnceAndAsItsOwnWord) {
  const auto rendered = RenderMarked(kBosTemplate, {{"user", "<s>hi"}}, {.bos_token = "<s>"});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  ASSERT_EQ(rendered->parts.size(), 2u);
  EXPECT_EQ(rendered->parts[0].text, "<s>");
  EXPECT_FALSE(rendered->parts[0].from_input);
  EXPECT_EQ(rendered->parts[1].text, "<s>hi");
  EXPECT_TRUE(rendered->parts[1].from_input);
  // Id 0 is the control token; what the caller wrote becomes ordinary pieces.
  const fakes::PieceTokenizer tokenizer({"<s>", "<", "s", ">", "hi"}, {0});
  const auto ids = tokenizer.EncodeMarked(*rendered);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, (std::vector<base::TokenId>{0, 1, 2, 3, 4}));
}

TEST(ChatTemplate, G13_WithoutABosTokenTheTemplateWritesNone) {
  EXPECT_EQ(Render(kBosTemplate, {{"user", "hi"}}), "hi");
}

// --- G14: a template's troubles are never silent ---

constexpr std::string_view kAlternating =
    "{% for m in messages %}"
    "{% if m.role not in ['user', 'assistant'] or (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate, found ' + m.role) }}{% endif %}{% endfor %}ok";

TEST(ChatTemplate, G14_RaiseExceptionIsTheCallersFaultInTheTemplatesWords) {
  EXPECT_EQ(Render(kAlternating, {{"user", "a"}, {"assistant", "b"}}), "ok");
  for (const char* second : {"user", "system"}) {
    const auto rendered = RenderMarked(kAlternating, {{"user", "a"}, {second, "b"}});
    EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(base::FieldOf(rendered.status()), "messages");
    EXPECT_NE(rendered.status().message().find("Roles must alternate"), std::string::npos);
  }
}

TEST(ChatTemplate, G14_WhatTheEngineLacksIsRefusedAtLoadWithItsNameAndLine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"a\n\n{{ messages | groupby('role') }}", "line 3: the filter 'groupby' is not supported"},
      {"{{ lipsum(5) }}", "the function 'lipsum' is not supported"},
      {"{{ 'a'.zfill(3) }}", "the method 'zfill' is not supported"},
      {"{{ 1 is sameas(2) }}", "the test 'sameas' is not supported"},
      {"{{ 1 is defined(2) }}", "an argument of the test 'defined' is not supported"},
      {"{{ 1 is divisibleby }}", "the test 'divisibleby' takes one argument"},
      {"{{ x|select('sameas', 1) }}", "the test 'sameas' is not supported"},
      {"{{ x|select(t) }}", "a test that is not written as a string is not supported"},
      {"{{ x|selectattr('a', 'equalto') }}", "the test 'equalto' takes one argument"},
      {"{{ x|map('join', ',') }}", "the filter 'map' with other than"},
      {"{{ x|map('groupby') }}", "the filter 'groupby' inside 'map' is not supported"},
      {"{% macro x() %}{% endmacro %}", "the tag 'macro' is not supported"},
      {"{% raw %}{{{% endraw %}", "the tag 'raw' is not supported"},
      {"{% generation %}{% endgeneration %}", "the tag 'generation' is not supported"},
      {"{% set a, b = x %}", "unpacking into several variables with 'set' is not supported"},
      {"{% for (a, b) in x %}{% endfor %}", "a bracket around a loop's variables is not supported"},
      {"{% for a in x recursive %}{% endfor %}", "'recursive' in a 'for' tag is not supported"},
      {"{% set x %}a{% endset %}", "a 'set' tag with a body is not supported"},
      {"{{ 1 / 2 }}", "the operator '/' is not supported"},
      {"{{ 2 ** 2 }}", "the operator '**' is not supported"},
      {"{{ 1.5 }}", "a number other than a plain decimal integer is not supported"},
      {"{{ 1, 2 }}", "a tuple is not supported"},
      {"{{ x|tojson(sort_keys=true) }}",
       "argument 'sort_keys' of the filter 'tojson' is not supported"},
      {"{{ x.__class__ }}", "the attribute '__class__' is not supported"},
      {"{{ loop.cycle('a', 'b') }}", "the method 'cycle' is not supported"},
      {"{{ x[0]() }}", "a call of an expression is not supported"},
  };
  for (const auto& [source, words] : cases) {
    EXPECT_NE(ParseError(source).find(words), std::string::npos) << ParseError(source);
  }
}

TEST(ChatTemplate, G14_AFaultThatOnlyShowsWhileRenderingNamesItsLine) {
  EXPECT_EQ(Render("a\n{{\n missing.part }}"), "chat template, line 3: 'missing' is undefined");
  EXPECT_NE(Render("{% if true %}\n{% if true %}\n{{ 'a' +\n 1 }}{% endif %}{% endif %}")
                .find("chat template, line 3: "),
            std::string::npos);
  EXPECT_NE(Render("{{ 'a' * 3 }}").find("cannot be operands of '*'"), std::string::npos);
  EXPECT_NE(Render("{{ 'a'.upper }}").find("has the method 'upper'"), std::string::npos);
  EXPECT_NE(Render("{{ [1] }}").find("cannot be written as text"), std::string::npos);
}

TEST(ChatTemplate, G14_ALargeTemplateIsFineUpToTheBoundAndRefusedPastIt) {
  std::string source = "{{ 1 }}";
  source.resize(ChatTemplate::kMaxTemplateBytes, 'x');
  EXPECT_EQ(Render(source).size(), source.size() - 6);
  source += 'x';
  EXPECT_NE(ParseError(source).find("kMaxTemplateBytes"), std::string::npos);
  std::string tags;
  while (tags.size() + 24 < ChatTemplate::kMaxTemplateBytes) tags += "{{1}}{{a.b[0]|trim~'x'}}";
  EXPECT_NE(Render(tags).find("'a' is undefined"), std::string::npos);
}

TEST(ChatTemplate, G14_NoTemplateRunsGrowsOrNestsWithoutBound) {
  std::string list = "{% set l = ['a'";
  for (int i = 0; i < 999; ++i) list += ",'a'";
  list += "] %}";
  EXPECT_NE(Render(list + "{% for a in l %}{% for b in l %}{% for c in l %}{% set x = 1 %}"
                          "{% endfor %}{% endfor %}{% endfor %}")
                .find("kMaxSteps"),
            std::string::npos);
  EXPECT_NE(Render(list + "{% set n = namespace(s='abcdefgh') %}{% for a in l %}"
                          "{% set n.s = n.s + n.s %}{% endfor %}")
                .find("kMaxWorkingBytes"),
            std::string::npos);
  EXPECT_NE(Render(list + "{% set n = namespace(s='abcdefgh') %}"
                          "{% for a in [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17] %}{% set n.s = "
                          "n.s + n.s %}{% endfor %}"
                          "{% for a in l %}{{ n.s }}{% endfor %}")
                .find("kMaxOutputBytes"),
            std::string::npos);
  EXPECT_NE(Render(list +
                   "{% set n = namespace(s=[]) %}{% for a in l %}{% set n.s = [n.s] %}{% endfor %}")
                .find("kMaxValueDepth"),
            std::string::npos);
  // Shared lists: few values, but a text that doubles with each.
  EXPECT_NE(
      Render("{% set n = namespace(s=['abcdefgh']) %}"
             "{% for a in 'abcdefghijklmnopqrstuvwxyzabc' %}{% set n.s = [n.s, n.s] %}{% endfor %}"
             "{{ n.s | tojson }}")
          .find("passes kMax"),
      std::string::npos);
}

constexpr std::string_view kPairs =
    "a\n{% for a in messages %}{% for b in messages %}{% for c in '12345678' %}{% set x = a %}"
    "{% endfor %}{% endfor %}{% endfor %}";

TEST(ChatTemplate, G14_ALimitPassedIsTheCallersFaultOnlyWithALargeConversation) {
  const auto endless = RenderMarked(
      "\n\n{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
      {{"user", "Hello!"}});
  EXPECT_EQ(endless.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(endless.status().message()),
            "chat template, line 3: the rendering passes kMaxWorkingBytes = 67108864");
  const std::vector<ChatMessage> many(2000, {"user", "x"});
  const auto long_chat = RenderMarked(kPairs, many);
  EXPECT_EQ(base::FieldOf(long_chat.status()), "messages");
  EXPECT_NE(long_chat.status().message().find("line 2: the rendering passes kMax"),
            std::string::npos)
      << long_chat.status();
  // The text counts as the messages do.
  constexpr std::string_view kLong =
      "{% for i in range(999) %}{% for m in messages %}{{ m.content }}{% endfor %}{% endfor %}";
  const auto long_text = RenderMarked(kLong, {{"user", std::string(100'000, 'x')}});
  EXPECT_EQ(base::FieldOf(long_text.status()), "messages");
  EXPECT_NE(long_text.status().message().find("kMaxOutputBytes"), std::string::npos);
}

TEST(ChatTemplate, G14_ALoopOverASmallConversationInsideALoopOverItPassesNoLimit) {
  // 180 messages take most of kSmallInputBytes.
  EXPECT_EQ(Render("{% for a in messages %}{% for b in messages %}{{ a.role[0] }}{% endfor %}"
                   "{% endfor %}",
                   std::vector<ChatMessage>(180, {"user", ""})),
            std::string(180 * 180, 'u'));
}

TEST(ChatTemplate, G14_ValuesThatDoNotGoTogetherAreTheTemplatesFaultInAPlainConversation) {
  const auto status = [](const ChatMessage& message, const ChatTemplateOptions& options = {}) {
    return RenderMarked("{{ 'Says ' + message_of_whom }}{{ date }}", {message}, options).status();
  };
  for (const char* const role : {"system", "user", "assistant"}) {
    const absl::Status plain = status({role, "Hello!"});
    EXPECT_EQ(plain.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(plain.message().find("line 1: 'message_of_whom' is undefined"), std::string::npos)
        << plain;
  }
  const std::vector<std::string> tools = {"{}"};
  for (const absl::Status& other :
       {status({"tool", "Hello!"}), status({"user", "Hello!", R"({"name": "A"})"}),
        status({"user", "Hello!"}, {.variables_json = R"({"date": 1})"}),
        status({"user", "Hello!"}, {.tools_json = tools})}) {
    EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(base::FieldOf(other), "messages");
    EXPECT_NE(other.message().find("line 1: 'message_of_whom' is undefined"), std::string::npos)
        << other;
  }
}

TEST(ChatTemplate, G14_WhatTheEngineLacksIsTheTemplatesFaultWhateverWasSent) {
  for (const char* const source :
       {"{{ messages[0].content.upper() }}", "{{ messages[0].content.replace('', 'x') }}",
        "{{ strftime_now('%Q') }}", "{{ 9223372036854775807 + messages | length }}"}) {
    const auto refused =
        RenderMarked(source, {{"tool", "caf\u00e9", R"({"name": "A"})"}}, {.unix_seconds = 0});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << source;
    EXPECT_NE(refused.status().message().find("not supported"), std::string::npos)
        << refused.status();
  }
}

TEST(ChatTemplate, G14_DeepNestingIsRefusedAtLoadWhereItsParserWouldRecurse) {
  const std::string open(100'000, '('), close(100'000, ')');
  EXPECT_NE(ParseError("{{ " + open + "1" + close + " }}").find("kMaxNestingDepth"),
            std::string::npos);
  EXPECT_NE(ParseError("{{ " + std::string(100'000, '-') + "1 }}").find("kMaxNestingDepth"),
            std::string::npos);
  EXPECT_NE(ParseError("{{ " + std::string(100'000, '[') + std::string(100'000, ']') + " }}")
                .find("kMaxNestingDepth"),
            std::string::npos);
  std::string nots, ifs, conditionals;
  for (int i = 0; i < 10'000; ++i) {
    nots += "not ";
    ifs += "{% if 1 %}";
    conditionals += "1 if 0 else ";
  }
  EXPECT_NE(ParseError("{{ " + nots + "1 }}").find("kMaxNestingDepth"), std::string::npos);
  EXPECT_NE(ParseError(ifs).find("kMaxNestingDepth"), std::string::npos);
  EXPECT_NE(ParseError("{{ " + conditionals + "1 }}").find("kMaxNestingDepth"), std::string::npos);
  // Chains are not nesting.
  std::string sum = "{{ 1", chain = "{{ 'a'", elifs = "{% if 0 %}";
  for (int i = 0; i < 10'000; ++i) {
    sum += "+1";
    chain += "|trim";
    elifs += "{% elif 0 %}";
  }
  EXPECT_EQ(Render(sum + " }}"), "10001");
  EXPECT_EQ(Render(chain + " }}"), "a");
  EXPECT_EQ(Render(elifs + "{% else %}x{% endif %}"), "x");
}

TEST(ChatTemplate, G14_SearchingTextsMadeForItStaysLinear) {
  const std::string hay(200'000, 'a');
  EXPECT_EQ(Render("{{ messages[0].content in messages[1].content }}",
                   {{"user", std::string(100'000, 'a') + "b"}, {"user", hay}}),
            "False");
}

// --- What the caller wrote stays marked ---

TEST(ChatTemplate, TheCallersWordsStayMarkedThroughEveryWayOfMovingThem) {
  const std::vector<ChatMessage> messages = {{"user", "  <|im_end|> x,y  "}};
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"{{ '<' + messages[0].content + '>' }}", "  <|im_end|> x,y  "},
      {"{{ '<' ~ messages[0].content ~ '>' }}", "  <|im_end|> x,y  "},
      {"{{ ('<' ~ messages[0].content) | trim }}", "  <|im_end|> x,y"},
      {"{{ messages[0].content.strip() ~ '<|im_end|>' }}", "<|im_end|> x,y"},
      {"{{ ('ab' ~ messages[0].content)[1:6] }}", "  <|"},
      {"{{ ('ab' ~ messages[0].content)[::-1] }}", "  y,x >|dne_mi|<  "},
      {"{{ messages[0].content[2] ~ messages[0].content[-3] }}", "<y"},
      {"{{ messages[0].content.split(',') | join('<|im_end|>') }}", "  <|im_end|> xy  "},
      {"{{ [messages[0].content, 'b'] | tojson }}", "  <|im_end|> x,y  "},
      {"{% for c in messages[0].content %}{{ c }}{% endfor %}", "  <|im_end|> x,y  "},
      {"{% set n = namespace(s=messages[0].content) %}{{ n.s or 'd' }}", "  <|im_end|> x,y  "},
      {"{{ messages[0].get('content') | default('d') | string }}", "  <|im_end|> x,y  "},
      {"{{ '<|' + messages[0].role + '|>' }}", "user"},
      {"{{ messages[0].content == messages[0].content }}", ""},
  };
  for (const auto& [source, input] : cases) {
    const auto rendered = RenderMarked(source, messages);
    ASSERT_TRUE(rendered.ok()) << rendered.status();
    EXPECT_EQ(InputBytes(*rendered), input) << source;
  }
}

TEST(ChatTemplate, EscapesThatJsonAddsToACallersCharacterAreMarkedToo) {
  const auto rendered = RenderMarked("{{ messages[0].content | tojson }}", {{"user", "a\"\n\x01"}});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(rendered->Joined(), "\"a\\\"\\n\\u0001\"");
  EXPECT_EQ(InputBytes(*rendered), "a\\\"\\n\\u0001");
}

TEST(ChatTemplate, NeighbouringPartsDifferInOrigin) {
  const auto rendered =
      RenderMarked("a{{ 'b' }}{{ messages[0].role }}{{ messages[0].content }}c", {{"user", "x"}});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  ASSERT_EQ(rendered->parts.size(), 3u);
  EXPECT_EQ(rendered->parts[0].text, "ab");
  EXPECT_EQ(rendered->parts[1].text, "userx");
  EXPECT_EQ(rendered->parts[2].text, "c");
}

TEST(ChatTemplate, ToolsAndToolCallsAreTheCallersWordsToo) {
  const std::vector<ChatMessage> messages = {
      {"assistant", "", R"({"tool_calls": [{"name": "<|im_end|>"}], "content": null})"}};
  const auto rendered = RenderMarked(
      "{{ tools[0]['<k>'] }}|{{ messages[0].tool_calls[0].name }}|{{ messages[0].content is none }}"
      "{% for k in tools[0] %}{{ k }}{% endfor %}",
      messages, {.variables_json = R"({"tools": [{"<k>": "<v>"}]})"});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(rendered->Joined(), "<v>|<|im_end|>|True<k>");
  EXPECT_EQ(InputBytes(*rendered), "<v><|im_end|><k>");
}

TEST(ChatTemplate, ToolsAreAListOfObjectsInTheOrderOfTheirEntries) {
  const std::vector<std::string> tools = {R"({"z": 1, "name": "<|im_end|>", "a": [2.5, null]})",
                                          "{}"};
  const auto rendered = RenderMarked("{{ tools | length }}{{ tools[0] | tojson }}", {},
                                     {.tools_json = tools, .strict_variables = true});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(rendered->Joined(), R"(2{"z": 1, "name": "<|im_end|>", "a": [2.5, null]})");
  EXPECT_EQ(InputBytes(*rendered), "zname<|im_end|>a");
  EXPECT_EQ(Render("{{ tools is none }}"), "True");
}

TEST(ChatTemplate, WhatTheTemplateHasNoPlaceForIsRefusedWhereAskedTo) {
  const auto status = [](const std::string& source, const ChatTemplateOptions& options) {
    return RenderMarked(source, {}, options).status();
  };
  const auto expect = [](const absl::Status& refused, std::string_view field,
                         std::string_view words) {
    EXPECT_EQ(base::FieldOf(refused), field) << refused;
    EXPECT_NE(refused.message().find(absl::string_view(words.data(), words.size())),
              std::string::npos)
        << refused;
  };
  const std::vector<std::string> tools = {"{}"}, lists = {"{}", "[]"}, none = {""};
  expect(status("x", {.tools_json = tools, .strict_variables = true}), "tools_json",
         "has no place for tools");
  EXPECT_TRUE(status("x", {.tools_json = tools}).ok());
  expect(status("{{ tools }}", {.tools_json = lists}), "tools_json",
         "tool 1: found an array, expected an object");
  expect(status("{{ tools }}", {.tools_json = none}), "tools_json", "tool 0");
  const auto strict = [](const std::string& json) {
    return ChatTemplateOptions{.variables_json = json, .strict_variables = true};
  };
  expect(status("x", strict(R"({"date_string": "1"})")), "template_variables_json",
         "has no 'date_string'");
  EXPECT_TRUE(status("{{ date_string }}", strict(R"({"date_string": "1"})")).ok());
  for (const char* const name : {"messages", "tools", "eos_token"}) {
    expect(status("{{ messages }}{{ tools }}{{ eos_token }}",
                  strict("{\"" + std::string(name) + "\": []}")),
           "template_variables_json", "has a field of its own");
  }
  expect(status("x", {.variables_json = "[]"}), "template_variables_json", "expected an object");
}

TEST(ChatTemplate, JsonThatIsNoObjectOrTooMuchIsRefused) {
  const auto refusal = [](const std::string& json) {
    return Render("x", {}, {.variables_json = json});
  };
  EXPECT_NE(refusal("[1]").find("found an array, expected an object"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1").find("the template's variables"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 9223372036854775808}").find("does not fit 64 bits"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  EXPECT_NE(refusal("{\"a\": " + deep + std::string(100, ']') + "}"), "x");
  EXPECT_NE(Render("x", {{"user", "a", "[]"}}).find("the fields of message 0"), std::string::npos);
}

TEST(ChatTemplate, FloatsAreSpeltAsPythonSpellsThem) {
  EXPECT_EQ(Render("{{ v | join(' ') }}", {},
                   {.variables_json = R"({"v": [0.1, 1e16, 123456789012345680.0, 1e15, 1e-4, 1e-5,
                                                -0.0, 2.0, 1.5e300, 5e-324]})"}),
            "0.1 1e+16 1.2345678901234568e+17 1000000000000000.0 0.0001 1e-05 -0.0 2.0 1.5e+300 "
            "5e-324");
}

TEST(ChatTemplate, WithoutATimeThereIsNoFunctionThatTellsIt) {
  const char* const source =
      "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}none{% endif %}";
  EXPECT_EQ(Render(source), "none");
  EXPECT_EQ(Render(source, {}, {.unix_seconds = 951'782'400}), "29 Feb 2000");
  EXPECT_NE(Render("{{ strftime_now('%d') }}").find("'strftime_now' is undefined"),
            std::string::npos);
  EXPECT_NE(Render("{{ strftime_now('%Q') }}", {}, {.unix_seconds = 0})
                .find("the conversion '%Q' of strftime_now is not supported"),
            std::string::npos);
}

TEST(ChatTemplate, TheCaseOfALetterOutsideAsciiIsNotGuessed) {
  EXPECT_NE(Render("{{ '\u00e9'.upper() }}").find("outside ASCII is not supported"),
            std::string::npos);
}

TEST(ChatTemplate, TextThatIsNotUtf8IsRefusedOnBothSides) {
  EXPECT_NE(ParseError("ab\xff").find("byte 2"), std::string::npos);
  const auto rendered = RenderMarked("x", {{"user", "a"}, {"user", "ab\x80"}});
  EXPECT_EQ(base::FieldOf(rendered.status()), "messages");
  EXPECT_NE(rendered.status().message().find("content of message 1 is not UTF-8 at byte 2"),
            std::string::npos);
}

}  // namespace
}  // namespace pagoda::text
