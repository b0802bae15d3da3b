#pragma once

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

// Every method that a server has, as its own reflection tells, and a call of any of them by name.
// The messages of reflection are read by their field numbers, since their generated code is not
// installed.
namespace pagoda::rpcs {

using Metadata = std::multimap<std::string, std::string>;

struct AnyCall {
  ::grpc::Status status;
  std::vector<std::string> replies;
};

// Sends one message of these bytes and reads to the end, whatever kind of method it is.
inline AnyCall CallAny(const std::shared_ptr<::grpc::Channel>& channel, const std::string& method,
                       const Metadata& metadata, const std::string& bytes = {}) {
  ::grpc::GenericStub stub(channel);
  ::grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
  ::grpc::CompletionQueue queue;
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    PAGODA_CHECK(queue.Next(&tag, &ok));
    return ok;
  };
  AnyCall call;
  const auto stream = stub.PrepareCall(&context, method, &queue);
  stream->StartCall(nullptr);
  bool ok = done();
  const ::grpc::Slice slice(bytes);
  const ::grpc::ByteBuffer request(&slice, 1);
  if (ok) {
    stream->WriteLast(request, {}, nullptr);
    ok = done();
  }
  while (ok) {
    ::grpc::ByteBuffer reply;
    stream->Read(&reply, nullptr);
    ok = done();
    if (!ok) break;
    ::grpc::Slice whole;
    PAGODA_CHECK(reply.DumpToSingleSlice(&whole).ok());
    call.replies.emplace_back(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  stream->Finish(&call.status, nullptr);
  done();
  queue.Shutdown();
  return call;
}

// What fields with this number hold, as bytes.
inline std::vector<std::string> FieldsOf(const std::string& message, int number) {
  google::protobuf::Empty unknown;
  PAGODA_CHECK(unknown.ParseFromString(message));
  std::vector<std::string> found;
  const auto& fields = unknown.GetReflection()->GetUnknownFields(unknown);
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() == number) found.push_back(fields.field(i).length_delimited());
  }
  return found;
}

inline std::string AskReflection(const std::shared_ptr<::grpc::Channel>& channel,
                                 const Metadata& metadata, char field, const std::string& text) {
  const char tag = static_cast<char>((field << 3) | 2);
  const AnyCall call =
      CallAny(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", metadata,
              std::string{tag, static_cast<char>(text.size())} + text);
  PAGODA_CHECK_MSG(call.status.ok() && call.replies.size() == 1, call.status.error_message());
  return call.replies.front();
}

// "/package.Service/Method" of every service.
inline std::vector<std::string> AllMethods(const std::shared_ptr<::grpc::Channel>& channel,
                                           const Metadata& metadata) {
  constexpr char kFileContainingSymbol = 4, kListServices = 7;
  constexpr int kFileDescriptors = 4, kServices = 6;
  std::vector<std::string> methods;
  const std::string list = AskReflection(channel, metadata, kListServices, "*");
  for (const std::string& service : FieldsOf(FieldsOf(list, kServices).front(), 1)) {
    const std::string name = FieldsOf(service, 1).front();
    const std::string reply = AskReflection(channel, metadata, kFileContainingSymbol, name);
    for (const std::string& bytes : FieldsOf(FieldsOf(reply, kFileDescriptors).front(), 1)) {
      google::protobuf::FileDescriptorProto file;
      PAGODA_CHECK(file.ParseFromString(bytes));
      for (const auto& found : file.service()) {
        if (file.package() + "." + found.name() != name) continue;
        for (const auto& method : found.method()) {
          methods.push_back("/" + name + "/" + method.name());
        }
      }
    }
  }
  return methods;
}

}  // namespace pagoda::rpcs
