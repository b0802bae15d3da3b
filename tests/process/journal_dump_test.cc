#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/journal_file.h"
#include "engine/journal_replay.h"
#include "tests/process/tenant_calls.h"

// A journal asked for over gRPC, and played again.
namespace pagoda::process {
namespace {

using testing::HasSubstr;

std::vector<std::uint8_t> BytesOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST(JournalDump, OneAskedForOverGrpcIsPlayedAgainWithTheSameDecisions) {
  const std::string folder = FreshFile("-journals");
  std::filesystem::create_directories(folder);
  Server server(TinyFile(), TenantFlags(TenantsFile(TwoTenants()),
                                        {"--journal-dir", folder, "--journal-memory", "16MiB"}));
  for (const char* const token : {kAlphaToken, kAlphaToken, kBetaToken, kAlphaToken}) {
    EXPECT_TRUE(Generate(*server.stub, {.token = token, .max_tokens = 20}).status.ok());
  }
  ::grpc::ClientContext context;
  v1::DumpJournalResponse response;
  const ::grpc::Status status = server.admin->DumpJournal(&context, {}, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::vector<std::uint8_t> bytes = BytesOf(response.path());
  EXPECT_EQ(static_cast<std::int64_t>(bytes.size()), response.bytes());
  const auto stored = engine::DecodeJournal(bytes);
  ASSERT_TRUE(stored.ok()) << stored.status();
  std::vector<engine::JournalSegment> segments;
  for (const engine::StoredSegment& segment : *stored) segments.push_back(segment.view());
  const auto report = engine::ReplaySegments(segments);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->num_decisions, 4 * 20);
}

TEST(JournalDump, WithoutAFolderThereIsNoneAndTheFlagIsNamed) {
  Server server(TinyFile());
  ::grpc::ClientContext context;
  v1::DumpJournalResponse response;
  const ::grpc::Status status = server.admin->DumpJournal(&context, {}, &response);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--journal-dir"));
}

}  // namespace
}  // namespace pagoda::process
