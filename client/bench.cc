#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/errors.h"
#include "client/figures.h"
#include "client/load/grpc_transport.h"
#include "client/load/load_report.h"
#include "client/load/load_run.h"
#include "client/progress.h"

namespace pagoda::client {
namespace {

// Asks what is served and whether the lengths that were asked for can be.
absl::StatusOr<v1::Model> AskModel(v1::InferenceService::Stub& stub, const Options& options,
                                   grpc::Status& status) {
  v1::GetModelRequest request;
  request.set_model(options.model);
  v1::Model model;
  grpc::ClientContext context;
  ApplyDeadline(options.deadline_seconds, context);
  status = stub.GetModel(&context, request, &model);
  if (!status.ok()) return absl::UnavailableError("the model could not be asked for");
  const LoadOptions& load = options.load;
  const std::int64_t longest =
      std::int64_t{load.shared_prefix} + load.input.most + load.output.most;
  if (longest > model.max_model_len()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shared-prefix, --input-len and --output-len come to ", longest,
                     " tokens, the server takes ", model.max_model_len()));
  }
  if (model.vocabulary_size() == 0) {
    return absl::InternalError("the server reports a model without a vocabulary");
  }
  return model;
}

std::string LiveLine(const LoadRun& run, base::Instant start) {
  const double seconds = static_cast<double>(base::SystemClock().Now().NanosSince(start)) / 1e9;
  return absl::StrCat(run.num_sent(), " sent, ", run.num_finished(), " finished, ",
                      run.num_failed(), " failed, ",
                      Fixed(static_cast<double>(run.output_tokens()) / seconds, 1), " tokens/s,");
}

}  // namespace

int RunBench(const Options& options, Console& console) {
  const auto channel = OpenChannel(options);
  if (!channel.ok()) return ReportError(options, LocalError(channel.status()), "bench", console);
  const auto stub = v1::InferenceService::NewStub(*channel);
  grpc::Status status;
  const auto model = AskModel(*stub, options, status);
  if (!status.ok()) return ReportError(options, DecodeError(status), "bench", console);
  if (!model.ok()) return ReportError(options, LocalError(model.status()), "bench", console);

  const LoadPlan plan(options.load, model->vocabulary_size());
  GrpcTransport transport(*channel, base::SystemClock(), options.load.num_callers(),
                          options.deadline_seconds, options.model);
  SystemPacer pacer;
  LoadRun run(options.load, plan, transport, pacer);
  const Interrupts::Scope interrupt(console.interrupts, [&run] { run.Stop(); });
  const base::Instant start = base::SystemClock().Now();
  Progress progress(console, [&run, start] { return LiveLine(run, start); });
  const LoadResult result = run.Run();
  progress.Stop();
  if (options.json) {
    console.out << ReportAsJson(options.load, result).dump() << std::endl;
  } else {
    console.out << ReportAsText(options.load, result) << std::flush;
  }
  return result.stopped || HasFailed(options.load, result) ? kExitFailed : kExitOk;
}

}  // namespace pagoda::client
