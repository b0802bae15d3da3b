#include "server/core/text_calls.h"

#include <utility>

#include "server/core/prompt_encoding.h"

namespace pagoda::server {
namespace {

class FunctionCall final : public TextCall {
 public:
  explicit FunctionCall(std::function<void()> run) : run_(std::move(run)) {}
  void RunText() override { run_(); }

 private:
  std::function<void()> run_;
};

}  // namespace

std::unique_ptr<TextCall> MakeTokenizeCall(PromptInput prompt, const ServedModel& model,
                                           TokenizeDone done) {
  return std::make_unique<FunctionCall>(
      [prompt = std::move(prompt), &model, done = std::move(done)] {
        auto encoded = EncodePrompt(prompt, model);
        if (!encoded.ok()) return done(encoded.status(), {});
        done(std::move(encoded->tokens), std::move(encoded->rendered_text));
      });
}

std::unique_ptr<TextCall> MakeDetokenizeCall(std::vector<base::TokenId> tokens, bool skip_special,
                                             const ServedModel& model, DetokenizeDone done) {
  return std::make_unique<FunctionCall>(
      [tokens = std::move(tokens), skip_special, &model, done = std::move(done)] {
        done(DecodeTokens(tokens, skip_special, *model.tokenizer));
      });
}

}  // namespace pagoda::server
