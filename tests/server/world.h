#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "server/core/front_desk.h"
#include "server/core/joined_reply.h"
#include "server/core/pipeline.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/piece_tokenizer.h"
#include "tests/fakes/scripted_engine.h"

namespace pagoda::server {

// A door without a protocol: takes when told to, as a client that reads.
class FakeReader : public ReplyListener {
 public:
  void OnReplyReady() override { ++num_notices; }
  int num_notices = 0;
};

class ContentsTemplate final : public text::ChatTemplate {
 public:
  absl::StatusOr<text::MarkedText> Render(std::span<const text::ChatMessage> messages,
                                          const text::ChatTemplateOptions&) const override {
    text::MarkedText::Part part{"", true};
    for (const text::ChatMessage& message : messages) part.text += message.content;
    return text::MarkedText{{part}};
  }
};

// A pipeline over a scripted engine, with a written-out vocabulary and a clock that stands still.
// With num_text_threads 0 (the default) everything happens on the test's own thread, in the order
// it asks for.
struct World {
  struct Options {
    std::vector<std::string> pieces = {"a", "b", "c", "d", "e", "f", "g", "h"};
    std::vector<base::TokenId> control = {};
    std::vector<base::TokenId> eos_tokens = {};
    std::int64_t max_requests = 4;
    std::int64_t max_queued_tokens = 1000;
    std::int32_t num_text_threads = 0;
    StreamBounds stream = {};
    Authenticator::Mode mode = Authenticator::Mode::kOneTenant;
    // When there are any, these and their credentials instead of `mode`; the bounds are of each.
    std::vector<TenantCredentials> tenants = {};
    std::int32_t max_model_len = 64;
    std::int64_t max_text_calls = 2;
    std::int64_t step_millis = 0;  // of four tokens
    bool serving = true;
    // Whose chat template writes the messages' contents one after another.
    bool chat = false;
  };

  static ServedModel MakeModel(const Options& options) {
    ServedModel model;
    model.card.names = {"tiny", "alias"};
    model.tokenizer = std::make_unique<fakes::PieceTokenizer>(options.pieces, options.control);
    if (options.chat) model.chat_template = std::make_unique<ContentsTemplate>();
    model.limits.vocabulary_size = static_cast<std::uint32_t>(options.pieces.size());
    model.limits.max_model_len = options.max_model_len;
    model.limits.block_size = 4;
    model.limits.capacity_blocks = options.max_model_len;
    model.limits.eos_tokens = options.eos_tokens;
    model.key_domain.block_size = 4;
    return model;
  }

  static PipelineOptions MakeOptions(const Options& options) {
    PipelineOptions made;
    made.tenants.clear();
    for (const TenantCredentials& tenant : options.tenants) {
      made.tenants.push_back({tenant.name, options.max_requests, options.max_queued_tokens});
    }
    if (made.tenants.empty()) {
      made.tenants = {{"default", options.max_requests, options.max_queued_tokens}};
    }
    made.stream = options.stream;
    made.num_text_threads = options.num_text_threads;
    made.max_text_calls = options.max_text_calls;
    made.slow_reader_grace_nanos = 10'000'000'000;
    made.step_nanos = options.step_millis * 1'000'000;
    made.tokens_per_step = 4;
    made.naming_secret = {0xab, 0xcd};
    return made;
  }

  static std::unique_ptr<Authenticator> MakeAuthenticator(const Options& options) {
    using Secret = scheduler::NamespaceMinter::Secret;
    if (options.tenants.empty()) return std::make_unique<Authenticator>(options.mode, Secret{});
    return std::make_unique<Authenticator>(Secret{}, options.tenants);
  }

  World() : World(Options{}) {}
  explicit World(const Options& options)
      : made_authenticator(MakeAuthenticator(options)),
        authenticator(*made_authenticator),
        desk(authenticator),
        caller(authenticator.ServersOwn()),
        pipeline(MakeOptions(options), MakeModel(options), authenticator, lifecycle, clock) {
    engine.Connect(pipeline);
    pipeline.Connect(engine);
    desk.Install(pipeline);
    if (options.serving) lifecycle.MoveTo(ServerState::kServing);
  }

  static CallInput Ids(std::vector<base::TokenId> ids, std::int32_t max_tokens = 8) {
    CallInput input;
    input.prompt = std::move(ids);
    input.fields.max_tokens = max_tokens;
    return input;
  }
  static CallInput Text(std::string text, std::int32_t max_tokens = 8) {
    CallInput input;
    input.prompt = TextPrompt{std::move(text), false, std::nullopt};
    input.fields.max_tokens = max_tokens;
    return input;
  }

  // Starts and prepares; the request is in the engine afterwards.
  ResponseStreamRef MustStart(CallInput input, ReplyListener& reader) {
    auto stream = pipeline.Start(caller, std::move(input), reader);
    PAGODA_CHECK_MSG(stream.ok(), stream.status().ToString());
    RunText();
    engine.ReadMail();
    return *std::move(stream);
  }
  void RunText() { pipeline.RunPendingText(); }

  fakes::ManualClock clock;
  std::unique_ptr<Authenticator> made_authenticator;
  Authenticator& authenticator;
  FrontDesk desk;
  Lifecycle& lifecycle = desk.lifecycle();
  fakes::ScriptedEngine engine;
  const Principal caller;  // of the first tenant
  Pipeline pipeline;
};

}  // namespace pagoda::server
