#include "text/chat_template.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "formats/json_document.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/json_value.h"
#include "text/jinja/limits.h"
#include "text/jinja/parser.h"
#include "text/jinja/workspace.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

using jinja::MarkedString;
using jinja::Value;
using jinja::Workspace;

absl::StatusOr<Value> NewString(MarkedString text, Workspace& workspace) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* made, workspace.NewString(std::move(text)));
  return made;
}

using Entries = std::vector<std::pair<Value, Value>>;

constexpr std::string_view kMessagesField = "messages";
constexpr std::string_view kToolsField = "tools_json";
constexpr std::string_view kVariablesField = "template_variables_json";
// What Render sets itself.
constexpr std::string_view kStandardVariables[] = {"messages", "add_generation_prompt", "tools",
                                                   "bos_token", "eos_token"};

// The members of a JSON object of the caller's, appended to `entries`. Nothing when it is empty.
absl::Status ReadFields(std::string_view json, const std::string& name, Entries& entries,
                        Workspace& workspace) {
  if (json.empty()) return absl::OkStatus();
  PAGODA_RETURN_IF_ERROR(workspace.SpendOnBytes(json.size()));
  const formats::JsonLimits limits{.max_bytes = jinja::kMaxWorkingBytes,
                                   .max_depth = jinja::kMaxValueDepth};
  PAGODA_ASSIGN_OR_RETURN(const auto document, formats::JsonDocument::Parse(json, name, limits));
  if (document->root().kind() != formats::JsonValue::Kind::kObject) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": found ", document->root().KindName(), ", expected an object"));
  }
  for (const formats::JsonMember& member : document->root().Members()) {
    PAGODA_ASSIGN_OR_RETURN(const Value key,
                            NewString(MarkedString::FromInput(member.key), workspace));
    PAGODA_ASSIGN_OR_RETURN(const Value value, jinja::FromJson(member.value, workspace));
    entries.emplace_back(key, value);
  }
  return absl::OkStatus();
}

// A dict with the keys `role` and `content`, and what else the message has: all of it the caller's
// words.
absl::StatusOr<Value> NewMessage(const ChatMessage& message, std::size_t index,
                                 Workspace& workspace) {
  Entries entries;
  const std::pair<std::string_view, const std::string&> fields[] = {{"role", message.role},
                                                                    {"content", message.content}};
  for (const auto& [name, text] : fields) {
    PAGODA_ASSIGN_OR_RETURN(const Value key,
                            NewString(MarkedString::FromTemplate(name), workspace));
    PAGODA_ASSIGN_OR_RETURN(const Value value, NewString(MarkedString::FromInput(text), workspace));
    entries.emplace_back(key, value);
  }
  const std::string name = absl::StrCat("the fields of message ", index);
  PAGODA_RETURN_IF_ERROR(ReadFields(message.fields_json, name, entries, workspace));
  PAGODA_ASSIGN_OR_RETURN(const jinja::Dict* dict, workspace.NewDict(entries));
  return dict;
}

absl::Status AboutField(std::string_view field, const absl::Status& status) {
  return status.ok() ? status : base::FieldError(field, base::ToStd(status.message()));
}

// A list of dicts.
absl::StatusOr<Value> NewTools(std::span<const std::string> tools_json, Workspace& workspace) {
  std::vector<Value> tools;
  for (std::size_t i = 0; i < tools_json.size(); ++i) {
    const std::string name = absl::StrCat("tool ", i);
    // An empty text is no object either.
    const std::string_view json = tools_json[i].empty() ? " " : std::string_view(tools_json[i]);
    Entries entries;
    PAGODA_RETURN_IF_ERROR(AboutField(kToolsField, ReadFields(json, name, entries, workspace)));
    PAGODA_ASSIGN_OR_RETURN(const jinja::Dict* dict, workspace.NewDict(entries));
    tools.emplace_back(dict);
  }
  PAGODA_ASSIGN_OR_RETURN(const jinja::List* list, workspace.NewList(std::move(tools)));
  return list;
}

absl::StatusOr<Value> NewMessages(std::span<const ChatMessage> messages, Workspace& workspace) {
  std::vector<Value> items;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(const Value item, NewMessage(messages[i], i, workspace));
    items.push_back(item);
  }
  PAGODA_ASSIGN_OR_RETURN(const jinja::List* list, workspace.NewList(std::move(items)));
  return list;
}

// What any template for chats has to take: plain texts of the three roles that all of them know.
bool IsPlain(std::span<const ChatMessage> messages, const ChatTemplateOptions& options) {
  constexpr std::string_view kRoles[] = {"system", "user", "assistant"};
  return options.tools_json.empty() && options.variables_json.empty() &&
         std::ranges::all_of(messages, [&](const ChatMessage& message) {
           return message.fields_json.empty() &&
                  std::ranges::find(kRoles, message.role) != std::end(kRoles);
         });
}

// Whether another conversation would help: one that is shorter, or one that is plainer.
bool IsCallersFault(const absl::Status& failed, std::size_t input_bytes, bool is_plain) {
  if (absl::IsResourceExhausted(failed)) return input_bytes > jinja::kSmallInputBytes;
  return !absl::IsUnimplemented(failed) && !is_plain;
}

absl::Status CheckUtf8(std::span<const ChatMessage> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto bad_role = FirstBadUtf8(messages[i].role);
    const auto bad = bad_role.has_value() ? bad_role : FirstBadUtf8(messages[i].content);
    if (!bad.has_value()) continue;
    return base::FieldError(kMessagesField,
                            absl::StrCat("the ", bad_role.has_value() ? "role" : "content",
                                         " of message ", i, " is not UTF-8 at byte ", *bad));
  }
  return absl::OkStatus();
}

class JinjaTemplate final : public ChatTemplate {
 public:
  explicit JinjaTemplate(jinja::SyntaxTree tree) : tree_(std::move(tree)) {}

  absl::StatusOr<MarkedText> Render(std::span<const ChatMessage> messages,
                                    const ChatTemplateOptions& options) const override {
    PAGODA_RETURN_IF_ERROR(CheckUtf8(messages));
    Workspace workspace;
    jinja::Evaluator evaluator(tree_, workspace);
    const absl::StatusOr<Value> list = NewMessages(messages, workspace);
    if (!list.ok()) return AboutField(kMessagesField, list.status());
    evaluator.Set("messages", *list);
    evaluator.Set("add_generation_prompt", options.add_generation_prompt);
    // Templates are written for a caller that always passes these two, as none where it has none.
    evaluator.Set("tools", jinja::None{});
    evaluator.Set("documents", jinja::None{});
    PAGODA_RETURN_IF_ERROR(SetToken("bos_token", options.bos_token, evaluator, workspace));
    PAGODA_RETURN_IF_ERROR(SetToken("eos_token", options.eos_token, evaluator, workspace));
    PAGODA_RETURN_IF_ERROR(SetVariables(options, evaluator, workspace));
    if (options.unix_seconds.has_value()) evaluator.SetTime(*options.unix_seconds);
    const std::size_t input_bytes = workspace.held_bytes();
    const absl::StatusOr<MarkedString> output = evaluator.Run();
    if (output.ok()) return output->ToMarkedText();
    if (!base::FieldOf(output.status()).empty()) return output.status();
    if (IsCallersFault(output.status(), input_bytes, IsPlain(messages, options))) {
      return AboutField(kMessagesField, output.status());
    }
    return absl::FailedPreconditionError(output.status().message());
  }

 private:
  bool SpeaksOf(std::string_view variable) const {
    return std::ranges::find(tree_.names, variable) != tree_.names.end();
  }

  absl::Status CheckVariable(std::string_view name) const {
    if (std::ranges::find(kStandardVariables, name) != std::end(kStandardVariables)) {
      return base::FieldError(kVariablesField,
                              absl::StrCat("'", base::ToAbsl(name), "' has a field of its own"));
    }
    if (SpeaksOf(name)) return absl::OkStatus();
    return base::FieldError(kVariablesField, absl::StrCat("the model's chat template has no '",
                                                          base::ToAbsl(name), "'; leave it out"));
  }

  absl::Status SetVariables(const ChatTemplateOptions& options, jinja::Evaluator& evaluator,
                            Workspace& workspace) const {
    Entries variables;
    PAGODA_RETURN_IF_ERROR(AboutField(
        kVariablesField,
        ReadFields(options.variables_json, "the template's variables", variables, workspace)));
    for (const auto& [key, value] : variables) {
      const std::string& name = std::get<const MarkedString*>(key)->bytes;
      if (options.strict_variables) PAGODA_RETURN_IF_ERROR(CheckVariable(name));
      evaluator.Set(name, value);
    }
    if (options.tools_json.empty()) return absl::OkStatus();
    if (options.strict_variables && !SpeaksOf("tools")) {
      return base::FieldError(kToolsField,
                              "the model's chat template has no place for tools; leave them out");
    }
    PAGODA_ASSIGN_OR_RETURN(const Value tools, NewTools(options.tools_json, workspace));
    evaluator.Set("tools", tools);
    return absl::OkStatus();
  }

  // A token that the model does not have stays undefined.
  static absl::Status SetToken(std::string_view name, std::string_view token,
                               jinja::Evaluator& evaluator, Workspace& workspace) {
    if (token.empty()) return absl::OkStatus();
    PAGODA_ASSIGN_OR_RETURN(const Value value,
                            NewString(MarkedString::FromTemplate(token), workspace));
    evaluator.Set(name, value);
    return absl::OkStatus();
  }

  const jinja::SyntaxTree tree_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const ChatTemplate>> ChatTemplate::Parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chat template has ", source.size(),
                     " bytes; at most kMaxTemplateBytes = ", kMaxTemplateBytes, " are possible"));
  }
  if (const auto bad = FirstBadUtf8(source); bad.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chat template is not UTF-8 at byte ", *bad));
  }
  PAGODA_ASSIGN_OR_RETURN(jinja::SyntaxTree tree, jinja::ParseTemplate(source));
  return std::make_unique<const JinjaTemplate>(std::move(tree));
}

}  // namespace pagoda::text
