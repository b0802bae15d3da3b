#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "client/console.h"
#include "pagoda/v1/inference.grpc.pb.h"

namespace pagoda::client {

// What one choice has come to so far.
struct ChoiceReply {
  std::string text;
  std::vector<std::uint32_t> token_ids;
  std::vector<v1::TokenLogprobs> logprobs;  // as many as token_ids, if they were asked for
};

// What a streamed reply has come to so far.
struct Reply {
  std::string request_id;
  std::vector<ChoiceReply> choices = std::vector<ChoiceReply>(1);  // by index; at least one
  v1::PromptDelta prompt;
  bool finished = false;
  v1::Finish finish;

  const std::string& text() const { return choices[0].text; }
};

// Reads a stream to its end: shows progress until the first words, hands each piece of the first
// choice's text to `show`, and lets Ctrl-C cancel the call. Returns: the call's status; `reply` has
// what came before it. A stream that ends without a finish is an error.
grpc::Status ReadReply(grpc::ClientContext& context,
                       grpc::ClientReader<v1::GenerateResponse>& stream, Console& console,
                       const std::function<void(std::string_view)>& show, Reply& reply);

// {text, token_ids, finish_reason, receipt, seed, request_id}, what stopped it where something did,
// and logprobs and prompt where they were asked for. Minus infinity is null. Of several choices
// each stands in `choices` with its index, and the first outside as well.
nlohmann::json ReplyAsJson(const Reply& reply);
// Why a choice ended: "stop", "length".
std::string_view ReasonOf(const Reply& reply, std::uint32_t index);
// One line for a person: tokens, blocks, times.
std::string ReceiptAsText(const Reply& reply);

}  // namespace pagoda::client
