#include "server/server_stack.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/runtime/log.h"
#include "base/runtime/machine_memory.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "engine/model_executor.h"
#include "formats/gguf.h"
#include "kernels/capabilities.h"
#include "model/checkpoint.h"
#include "model/device_capabilities.h"
#include "model/folder_config.h"
#include "model/kv_memory.h"
#include "model/load_checks.h"
#include "model/load_plan.h"
#include "model/memory_plan.h"
#include "model/model.h"
#include "scheduler/scheduler.h"
#include "server/config/tenants_file.h"
#include "server/core/served_model.h"
#include "server/tenant_wiring.h"
#include "text/load_chat_template.h"
#include "text/model_text.h"
#include "text/tokenizer.h"

namespace pagoda::server {
namespace {

// What of the mailbox a request may fill between two reads: itself, one cancel, and pauses and
// resumes that cross and are put right.
constexpr std::int32_t kMessagesPerRequest = 8;
constexpr std::int32_t kControlMessages = 64;
constexpr double kNanosPerSecond = 1e9;

// Rows of the LM head in a step: one for every sequence, and some for prompts whose tokens are
// scored. Each row is as many floats as the vocabulary has tokens.
std::int32_t MaxLogitRows(const ServerConfig& config) {
  constexpr std::int32_t kPromptRows = 64;
  return config.max_num_seqs + std::min(kPromptRows, config.max_num_batched_tokens);
}

model::ModelOptions ModelOptionsOf(const ServerConfig& config,
                                   const std::function<bool()>& stop_asked) {
  model::ModelOptions options;
  options.device = config.device;
  options.activation_dtype = config.activation_dtype;
  options.kv_cache_dtype = config.kv_cache_dtype;
  options.num_threads = config.threads;
  options.block_size = config.block_size;
  options.max_num_batched_tokens = config.max_num_batched_tokens;
  options.max_num_seqs = config.max_num_seqs;
  options.max_logit_rows = MaxLogitRows(config);
  options.max_model_len = config.max_model_len;
  options.stop_asked = stop_asked;
  return options;
}

// `where` is the file, or the file and its key, that the template stands in.
absl::Status ParseTemplate(std::string_view where, std::string_view source, ServedModel& served) {
  auto parsed = text::LoadChatTemplate(source, *served.tokenizer);
  if (!parsed.ok()) {
    return absl::Status(
        parsed.status().code(),
        absl::StrCat(base::ToAbsl(where), ": the chat template: ", parsed.status().message()));
  }
  served.chat_template = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status LoadFolderText(const std::string& directory, ServedModel& served) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<base::TokenId> eos, model::ReadEosTokens(directory));
  PAGODA_ASSIGN_OR_RETURN(text::ModelText words, text::LoadModelText(directory, eos));
  served.tokenizer = std::move(words.tokenizer);
  if (words.chat_template.empty()) return absl::OkStatus();
  return ParseTemplate(directory, words.chat_template, served);
}

// The words of the model: vocabulary and chat template of its files.
absl::Status LoadText(const std::string& path, ServedModel& served) {
  if (std::filesystem::is_directory(path)) return LoadFolderText(path, served);
  PAGODA_ASSIGN_OR_RETURN(const auto file, formats::GgufFile::Open(path));
  PAGODA_ASSIGN_OR_RETURN(served.tokenizer, text::Tokenizer::FromGguf(*file));
  constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
  if (file->Find(kTemplateKey) == nullptr) return absl::OkStatus();
  PAGODA_ASSIGN_OR_RETURN(const std::string_view source, file->String(kTemplateKey));
  return ParseTemplate(path, source, served);
}

// What the model adds is left out: the key domain and the vocabulary.
scheduler::SchedulerConfig BaseSchedulerConfig(const ServerConfig& config, std::int32_t num_blocks,
                                               std::int32_t max_model_len) {
  scheduler::SchedulerConfig result;
  result.pool_blocks_per_group = {num_blocks};
  result.block_size = config.block_size;
  result.max_num_seqs = config.max_num_seqs;
  // Each of a tenant's running requests may have a namespace of its own.
  result.max_namespaces = std::max(result.max_namespaces, config.max_num_seqs);
  result.max_num_batched_tokens = config.max_num_batched_tokens;
  result.max_model_len = max_model_len;
  result.max_logit_rows_per_step = MaxLogitRows(config);
  result.max_queued_requests = config.max_queued_requests;
  result.max_queued_tokens = config.max_queued_tokens;
  result.cached_block_ttl_ms = config.cached_block_ttl_ms;
  result.key_domain.block_size = config.block_size;
  result.tenants = SchedulerTenantsOf(config.tenant_settings);
  return result;
}

scheduler::SchedulerConfig SchedulerConfigOf(const ServerConfig& config,
                                             const model::ModelInfo& info, std::int32_t num_blocks,
                                             std::int32_t max_model_len) {
  scheduler::SchedulerConfig result = BaseSchedulerConfig(config, num_blocks, max_model_len);
  result.vocabulary_size = info.vocabulary_size;
  result.key_domain.model_digest = info.digest;
  result.key_domain.kv_type = info.kv_geometry.groups.front().type;
  result.key_domain.position_scheme = "rope";
  result.key_domain.numerics_id = info.numerics_id;
  return result;
}

ModelCard CardOf(const ServerConfig& config, const model::ModelInfo& info,
                 const model::MemoryPlan& plan, std::int32_t num_blocks) {
  return {.names = config.served_model_name,
          .architecture = info.architecture,
          .num_parameters = info.num_parameters,
          .weight_format = info.weight_format,
          .weight_bytes = info.weight_bytes,
          .activation_dtype = info.activation_dtype,
          .kv_cache_dtype = info.kv_cache_dtype,
          .numerics_id = info.numerics_id,
          .context_length = info.context_length,
          .num_kv_blocks = num_blocks,
          .max_num_seqs = config.max_num_seqs,
          .max_num_batched_tokens = config.max_num_batched_tokens,
          .kv_bytes_per_token = plan.kv_bytes_per_token};
}

void LogModel(const ServerConfig& config, const model::ModelInfo& info,
              const model::MemoryPlan& plan) {
  base::LogInfo(absl::StrCat("model ", config.served_model_name.front(), ": ", info.architecture,
                             ", ", info.num_parameters, " parameters, ", info.weight_format, ", ",
                             base::FormatBytes(info.weight_bytes), " packed"));
  base::LogInfo(absl::StrCat("numerics ", info.numerics_id, "; activations ", info.activation_dtype,
                             ", KV ", info.kv_cache_dtype, ", ", plan.kv_bytes_per_token,
                             " bytes per token"));
}

// A load as its headers plan it. The plan points into the checkpoint.
struct HeaderPlan {
  std::unique_ptr<model::Checkpoint> checkpoint;
  model::LoadPlan load;
};

absl::StatusOr<HeaderPlan> PlanFromHeaders(const ServerConfig& config) {
  HeaderPlan plan;
  PAGODA_ASSIGN_OR_RETURN(const kernels::Capabilities capabilities,
                          model::CapabilitiesOf(config.device));
  PAGODA_ASSIGN_OR_RETURN(plan.checkpoint, model::Checkpoint::Open(config.model));
  PAGODA_ASSIGN_OR_RETURN(plan.load, model::PlanLoad(*plan.checkpoint,
                                                     {.activation_dtype = config.activation_dtype,
                                                      .kv_cache_dtype = config.kv_cache_dtype,
                                                      .block_size = config.block_size,
                                                      .max_model_len = config.max_model_len},
                                                     capabilities.pack_layout));
  return plan;
}

// What is packed must stay in memory; what is used in place lies in the file's mapping, which the
// system may drop and read again.
absl::Status CheckWeightsFit(const ServerConfig& config, std::int64_t packed_bytes,
                             std::int64_t available_bytes) {
  const std::int64_t pool_bytes = config.kv_cache_bytes.value_or(0);
  if (packed_bytes + pool_bytes <= available_bytes) return absl::OkStatus();
  const std::string weights = absl::StrCat("too little memory: the weights of ", config.model,
                                           " take ", base::FormatBytesUp(packed_bytes), " packed");
  const std::string available = absl::StrCat(
      base::FormatBytes(available_bytes), " are available to this process; free memory, raise the ",
      "limit of its container, ");
  if (packed_bytes > available_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(weights, ", ", available,
                     "or serve smaller weights (pagoda plan says what a model takes)"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(weights, " and --kv-cache-memory asks for ", base::FormatBytes(pool_bytes), ", ",
                   base::FormatBytesUp(packed_bytes + pool_bytes), " in all, ", available,
                   "or lower --kv-cache-memory"));
}

std::int64_t Nanos(double seconds) { return static_cast<std::int64_t>(seconds * kNanosPerSecond); }

}  // namespace

// What is made from the configuration before the pieces are connected.
struct ServerStack::Parts {
  ServedModel served;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  std::unique_ptr<engine::Executor> executor;
  std::vector<base::TokenId> eos_tokens;
};

ServerStack::ServerStack(const ServerConfig& config, FrontDesk& desk,
                         const base::ClockSource& clock)
    : config_(config), desk_(desk), clock_(clock) {}

ServerStack::~ServerStack() {
  if (monitor_) monitor_->Stop();
  if (engine_) engine_->Stop();
}

absl::StatusOr<std::unique_ptr<ServerStack>> ServerStack::Load(
    const ServerConfig& config, FrontDesk& desk, const base::ClockSource& clock,
    const std::function<bool()>& stop_asked) {
  Parts parts;
  PAGODA_RETURN_IF_ERROR(LoadText(config.model, parts.served));
  model::ModelOptions model_options = ModelOptionsOf(config, stop_asked);
  model_options.vocabulary_size = parts.served.tokenizer->vocabulary_size();
  PAGODA_ASSIGN_OR_RETURN(auto model, model::Model::Load(config.model, model_options));
  if (stop_asked()) return absl::CancelledError("the load was stopped");
  const model::ModelInfo& info = model->info();
  const std::int32_t max_model_len =
      config.max_model_len == 0 ? info.context_length : config.max_model_len;
  const model::MemoryPlan plan =
      model::PlanMemory(info.kv_geometry, info.weight_bytes, max_model_len);
  LogModel(config, info, plan);

  PAGODA_ASSIGN_OR_RETURN(const std::int64_t available, base::AvailableMemory());
  PAGODA_ASSIGN_OR_RETURN(
      const model::KvMemoryAnswer memory,
      model::ChooseKvMemory({.asked_bytes = config.kv_cache_bytes,
                             .available_bytes = available,
                             .bytes_per_block = plan.kv_bytes_per_block,
                             .blocks_per_full_request = plan.BlocksPerFullRequest(),
                             .max_num_seqs = config.max_num_seqs}));
  base::LogInfo(memory.explanation);
  PAGODA_RETURN_IF_ERROR(model->AllocateKv(memory.num_blocks));

  scheduler::SchedulerConfig scheduling =
      SchedulerConfigOf(config, info, memory.num_blocks, max_model_len);
  PAGODA_ASSIGN_OR_RETURN(auto prefixes, EncodePrefixes(config, parts.served));
  scheduling.public_blocks = PublicBlocksOf(prefixes, config.block_size);
  PAGODA_RETURN_IF_ERROR(CheckPrefixes(config, prefixes, scheduling));
  PAGODA_RETURN_IF_ERROR(CheckScheduling(config, scheduling));
  PAGODA_RETURN_IF_ERROR(CheckPrefixesAreHeld(config, prefixes, scheduling));
  PAGODA_ASSIGN_OR_RETURN(parts.scheduler, scheduler::Scheduler::Create(scheduling));
  parts.eos_tokens = parts.served.tokenizer->eos_tokens();
  parts.served.card = CardOf(config, info, plan, memory.num_blocks);
  parts.served.key_domain = scheduling.key_domain;
  parts.served.limits = {.vocabulary_size = info.vocabulary_size,
                         .max_model_len = max_model_len,
                         .block_size = config.block_size,
                         .capacity_blocks = scheduler::Scheduler::CapacityBlocks(scheduling),
                         .max_num_seqs = scheduling.max_num_seqs,
                         .eos_tokens = parts.eos_tokens};
  parts.executor = std::make_unique<engine::ModelExecutor>(
      std::move(model), engine::ModelExecutorOptions{
                            .limits = {.num_kv_groups = 1,
                                       .block_size = config.block_size,
                                       .max_num_seqs = config.max_num_seqs,
                                       .max_num_batched_tokens = config.max_num_batched_tokens,
                                       .max_logit_rows = MaxLogitRows(config),
                                       .max_model_len = max_model_len},
                            .eos_tokens = parts.eos_tokens});
  auto stack = std::make_unique<ServerStack>(config, desk, clock);
  stack->scheduling_ = scheduling;
  stack->prefixes_ = std::move(prefixes);
  stack->Wire(std::move(parts));
  return stack;
}

void ServerStack::Wire(Parts parts) {
  PipelineOptions options;
  options.tenants = BoundsOf(config_);
  options.limits = LimitsOf(scheduling_, parts.served.limits);
  options.max_requests = config_.max_queued_requests;
  options.num_text_threads = config_.text_threads;
  options.slow_reader_grace_nanos = Nanos(config_.slow_reader_grace_s);
  options.step_nanos = Nanos(config_.step_time_s);
  options.tokens_per_step = config_.max_num_batched_tokens;
  // A prompt may get a score for every row of a step, and a pause comes a step in flight too late.
  const auto late_rows = static_cast<std::size_t>(MaxLogitRows(config_)) *
                         static_cast<std::size_t>(parts.executor->max_in_flight());
  options.stream.ring_tokens =
      std::max(options.stream.ring_tokens, options.stream.pause_at + late_rows);
  options.naming_secret = DrawSecret();
  pipeline_ = std::make_unique<Pipeline>(options, std::move(parts.served), desk_.authenticator(),
                                         desk_.lifecycle(), clock_);
  MonitorOptions monitoring;
  if (!config_.journal_dir.empty()) {
    journal_ = std::make_unique<engine::Journal>(static_cast<std::size_t>(config_.journal_bytes));
    journal_dumps_ = std::make_unique<JournalDumps>(*journal_, config_.journal_dir);
    journal_dumps_->WriteForBrokenInvariants();
    monitoring.on_failed_steps = [this] { journal_dumps_->WriteForFailedSteps(); };
  }
  engine_ = std::make_unique<engine::Engine>(
      engine::EngineOptions{
          .mailbox_capacity = config_.max_queued_requests * kMessagesPerRequest + kControlMessages,
          .eos_tokens = parts.eos_tokens,
          .journal = journal_.get()},
      std::move(parts.scheduler), std::move(parts.executor), *pipeline_, clock_);
  port_ = std::make_unique<LiveEngine>(*engine_);
  pipeline_->Connect(*port_);
  monitor_ = std::make_unique<Monitor>(monitoring, *pipeline_, desk_.lifecycle(), clock_);
}

absl::Status ServerStack::CheckStart(const ServerConfig& config, std::int64_t available_bytes) {
  PAGODA_ASSIGN_OR_RETURN(const HeaderPlan planned, PlanFromHeaders(config));
  const model::LoadPlan& plan = planned.load;
  PAGODA_RETURN_IF_ERROR(CheckWeightsFit(config, plan.weights.packed_bytes, available_bytes));
  PAGODA_ASSIGN_OR_RETURN(
      const model::KvMemoryAnswer memory,
      model::ChooseKvMemory({.asked_bytes = config.kv_cache_bytes,
                             .available_bytes = available_bytes - plan.weights.packed_bytes,
                             .bytes_per_block = plan.memory.kv_bytes_per_block,
                             .blocks_per_full_request = plan.memory.BlocksPerFullRequest(),
                             .max_num_seqs = config.max_num_seqs}));
  const std::int32_t max_model_len =
      config.max_model_len == 0 ? plan.config.context_length : config.max_model_len;
  scheduler::SchedulerConfig scheduling =
      BaseSchedulerConfig(config, memory.num_blocks, max_model_len);
  std::vector<EncodedPrefix> prefixes;
  if (!config.prefix_settings.empty()) {
    ServedModel served;
    PAGODA_RETURN_IF_ERROR(LoadText(config.model, served));
    PAGODA_ASSIGN_OR_RETURN(prefixes, EncodePrefixes(config, served));
    scheduling.public_blocks = PublicBlocksOf(prefixes, config.block_size);
    PAGODA_RETURN_IF_ERROR(CheckPrefixes(config, prefixes, scheduling));
  }
  PAGODA_RETURN_IF_ERROR(CheckScheduling(config, scheduling));
  return CheckPrefixesAreHeld(config, prefixes, scheduling);
}

absl::Status ServerStack::CheckContent(const ServerConfig& config) {
  ServedModel served;
  PAGODA_RETURN_IF_ERROR(LoadText(config.model, served));
  PAGODA_ASSIGN_OR_RETURN(const HeaderPlan planned, PlanFromHeaders(config));
  const model::LoadPlan& plan = planned.load;
  PAGODA_RETURN_IF_ERROR(model::CheckVocabulary(served.tokenizer->vocabulary_size(), plan.config));
  return model::CheckContent(plan.weights, plan.config);
}

absl::StatusOr<ReloadReport> ServerStack::ReloadTenants(Authenticator& authenticator) {
  if (config_.tenant_settings.empty()) {
    return absl::FailedPreconditionError(
        "the server was started without --tenants: there is nothing to reload");
  }
  ServerConfig next = config_;
  PAGODA_ASSIGN_OR_RETURN(auto read, LoadTenants(config_));
  PAGODA_ASSIGN_OR_RETURN(next.tenant_settings,
                          InOrderOf(config_.tenant_settings, std::move(read)));
  scheduler::SchedulerConfig scheduling = scheduling_;
  scheduling.tenants = SchedulerTenantsOf(next.tenant_settings);
  PAGODA_RETURN_IF_ERROR(CheckScheduling(next, scheduling));
  PAGODA_RETURN_IF_ERROR(
      pipeline_->ChangeTenants({.configs = scheduling.tenants,
                                .limits = LimitsOf(scheduling, pipeline_->model().limits),
                                .bounds = BoundsOf(next)}));
  authenticator.ReplaceCredentials(CredentialsOf(next.tenant_settings));
  scheduling_ = std::move(scheduling);
  const bool in_effect = pipeline_->SettleTenants();
  return ReloadReport{
      .in_effect = in_effect,
      .summary = absl::StrCat(
          next.tenant_settings.size(), " tenants read from ", config_.tenants,
          in_effect ? ", in effect" : "; shares and limits hold once what runs fits them")};
}

absl::StatusOr<JournalReport> ServerStack::DumpJournal() {
  if (journal_dumps_ != nullptr) return journal_dumps_->Write("asked");
  return absl::FailedPreconditionError(
      "this server keeps no journal; start it with --journal-dir FOLDER");
}

absl::Status ServerStack::Start() {
  engine_->Start();
  monitor_->Start();
  for (const EncodedPrefix& prefix : prefixes_) {
    PAGODA_RETURN_IF_ERROR(pipeline_->AddPublicPrefix(prefix.tokens, prefix.readers));
    base::LogInfo(absl::StrCat(
        "public prefix ", prefix.name, ": ", prefix.tokens.size(), " tokens, for ",
        prefix.readers.empty() ? "everybody" : absl::StrCat(prefix.readers.size(), " tenants")));
  }
  PAGODA_RETURN_IF_ERROR(pipeline_->WarmUp());
  desk_.Install(*pipeline_);
  desk_.lifecycle().MoveTo(ServerState::kServing);
  return absl::OkStatus();
}

void ServerStack::Drain(base::Instant deadline) {
  desk_.lifecycle().MoveTo(ServerState::kDraining);
  pipeline_->CloseGate();
  if (!pipeline_->WaitUntilEmpty(deadline)) {
    base::LogWarning(absl::StrCat("drain: ", pipeline_->num_live(),
                                  " requests had not finished in time and were ended"));
  }
  pipeline_->CloseSubmissions();
  engine_->Stop();
  monitor_->Stop();
}

}  // namespace pagoda::server
