#include "text/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
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
absl::StatusOr<Value> NewMessage(const ChatMessage& message, Workspace& workspace) {
  Entries entries;
  const std::pair<std::string_view, const std::string&> fields[] = {{"role", message.role},
                                                                    {"content", message.content}};
  for (const auto& [name, text] : fields) {
    PAGODA_ASSIGN_OR_RETURN(const Value key,
                            NewString(MarkedString::FromTemplate(name), workspace));
    PAGODA_ASSIGN_OR_RETURN(const Value value, NewString(MarkedString::FromInput(text), workspace));
    entries.emplace_back(key, value);
  }
  PAGODA_RETURN_IF_ERROR(
      ReadFields(message.fields_json, "the fields of a message", entries, workspace));
  PAGODA_ASSIGN_OR_RETURN(const jinja::Dict* dict, workspace.NewDict(entries));
  return dict;
}

absl::Status CheckUtf8(std::span<const ChatMessage> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto bad_role = FirstBadUtf8(messages[i].role);
    const auto bad = bad_role.has_value() ? bad_role : FirstBadUtf8(messages[i].content);
    if (!bad.has_value()) continue;
    return base::FieldError(
        "messages", absl::StrCat("the ", bad_role.has_value() ? "role" : "content", " of message ",
                                 i, " is not UTF-8 at byte ", *bad));
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
    std::vector<Value> items;
    for (const ChatMessage& message : messages) {
      PAGODA_ASSIGN_OR_RETURN(const Value item, NewMessage(message, workspace));
      items.push_back(item);
    }
    PAGODA_ASSIGN_OR_RETURN(const jinja::List* list, workspace.NewList(std::move(items)));
    Entries variables;
    PAGODA_RETURN_IF_ERROR(
        ReadFields(options.variables_json, "the template's variables", variables, workspace));
    evaluator.Set("messages", list);
    evaluator.Set("add_generation_prompt", options.add_generation_prompt);
    // Templates are written for a caller that always passes these two, as none where it has none.
    evaluator.Set("tools", jinja::None{});
    evaluator.Set("documents", jinja::None{});
    PAGODA_RETURN_IF_ERROR(SetToken("bos_token", options.bos_token, evaluator, workspace));
    PAGODA_RETURN_IF_ERROR(SetToken("eos_token", options.eos_token, evaluator, workspace));
    for (const auto& [name, value] : variables) {
      evaluator.Set(std::get<const MarkedString*>(name)->bytes, value);
    }
    if (options.unix_seconds.has_value()) evaluator.SetTime(*options.unix_seconds);
    PAGODA_ASSIGN_OR_RETURN(const MarkedString output, evaluator.Run());
    return output.ToMarkedText();
  }

 private:
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
