#include "tests/scheduler/world.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/check.h"

namespace pagoda::scheduler::testing {
namespace {

constexpr base::TokenId kVocabulary = 5'000;

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kFailed:
      return "failed";
    case FinishReason::kNonFinite:
      return "not finite";
    default:
      return "other";
  }
}

}  // namespace

World::World(SchedulerConfig config)
    : config_(std::move(config)),
      scheduler_(*Scheduler::Create(config_)),
      executor_({.pool_blocks_per_group = config_.pool_blocks_per_group,
                 .block_size = config_.block_size,
                 .max_num_seqs = config_.max_num_seqs,
                 .max_model_len = config_.max_model_len,
                 .vocabulary_size = kVocabulary,
                 .max_in_flight = config_.max_in_flight}),
      oracle_(config_.block_size, config_.max_model_len, kVocabulary) {}

void World::Run(std::string_view script) {
  std::istringstream lines{std::string(script)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    Do(words);
    scheduler_->CheckInvariants();
    TakeFinished();
  }
}

void World::Do(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "add" || verb == "public") return Add(words);
  if (verb == "step") {
    if (!Step(/*aloud=*/true)) said_ += "nothing\n";
    return;
  }
  if (verb == "done") return Complete(), Fence();
  if (verb == "complete") return Complete();
  if (verb == "fence") return Fence();
  if (verb == "fail") return Fail();
  if (verb == "spoil") return Complete(/*is_spoiled=*/true), Fence();
  if (verb == "run") return RunToTheEnd();
  if (verb == "flush") return Flush(words);
  if (verb == "now") {
    now_ = base::Instant::FromNanos(std::atoi(words[1].c_str()));
    return;
  }
  const base::RequestId id = IdOf(words.at(1));
  if (verb == "cancel") return scheduler_->Cancel(id, FinishReason::kCancelled);
  PAGODA_CHECK(verb == "pause" || verb == "resume");
  scheduler_->SetPaused(id, verb == "pause");
}

void World::Flush(const Words& words) {
  std::optional<base::TenantId> only;
  if (words.size() > 1) only = base::TenantId(static_cast<std::uint32_t>(std::stoul(words[1])));
  said_ += "dropped " + std::to_string(scheduler_->FlushPrefixCache(only)) + "\n";
}

void World::AddPublic(NewRequest request, const std::string& name, const std::string& readers) {
  std::vector<base::TenantId> tenants;
  for (const char digit : readers) tenants.emplace_back(static_cast<std::uint32_t>(digit - '0'));
  const absl::Status status = scheduler_->AddPublicPrefix(std::move(request), tenants);
  if (status.ok()) return;
  names_.pop_back();
  said_ += name + ": " + std::string(status.message()) + "\n";
}

void World::Add(const Words& words) {
  RequestSketch sketch;
  std::map<std::string, std::string> options = {{"from", "1"}, {"max", "1"}};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
  }
  const auto number = [&](const char* name) { return std::atoi(options.at(name).c_str()); };
  sketch.prompt = Ascending(static_cast<base::TokenId>(number("from")),
                            static_cast<std::size_t>(number("prompt")));
  sketch.fields.max_tokens = number("max");
  if (options.contains("priority")) sketch.fields.priority = number("priority");
  if (options.contains("deadline")) {
    sketch.fields.deadline = base::Instant::FromNanos(number("deadline"));
  }
  if (options.contains("n")) sketch.fields.n = number("n");
  if (options.contains("skip")) sketch.fields.skip_reading_prefix_cache = number("skip") == 1;
  if (options.contains("salt")) sketch.salt = options["salt"];
  if (options.contains("tenant")) sketch.tenant = static_cast<std::uint32_t>(number("tenant"));
  sketch.id = names_.size() + 1;
  const ModelLimits limits = LimitsFor(config_, kVocabulary, sketch.tenant);
  const std::uint64_t epoch = scheduler_->epoch(base::TenantId(sketch.tenant));
  auto request = MakeRequest(sketch, limits, config_, epoch);
  if (!request.ok()) {
    said_ += words[1] + ": refused\n";
    return;
  }
  names_.push_back(words[1]);
  if (words[0] == "public") return AddPublic(*std::move(request), words[1], options["readers"]);
  scheduler_->Add(*std::move(request));
}

bool World::Step(bool aloud) {
  const StepPlan* plan = scheduler_->TryPlan(now_);
  if (plan == nullptr) return false;
  ++num_steps_;
  for (const SlotOpening& opening : plan->opened) slots_.erase(opening.slot.value());
  for (const SlotOpening& opening : plan->opened) {
    slots_[opening.slot.value()] =
        OwnerOf(std::span(plan->tokens).subspan(opening.history.begin, opening.history.count));
  }
  if (aloud) SayPlan(*plan);
  PAGODA_CHECK(executor_.Submit(*plan).ok());
  submitted_.push_back(plan);
  return true;
}

// A row's owner is told by its tokens: its history is that of a live request's choice.
std::string World::OwnerOf(std::span<const base::TokenId> history) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (ended_.contains(names_[i])) continue;
    const NewRequest& request = scheduler_->request(base::RequestId(i + 1));
    for (std::uint32_t c = 0; c < request.num_choices(); ++c) {
      const std::string name = c == 0 ? names_[i] : names_[i] + "." + std::to_string(c);
      const bool is_taken =
          std::ranges::any_of(slots_, [&](const auto& slot) { return slot.second == name; });
      if (!is_taken && std::ranges::equal(request.tokens(c), history)) return name;
    }
  }
  return "nobody";
}

void World::SayPlan(const StepPlan& plan) {
  std::ostringstream out;
  for (const MemoryEffect& effect : plan.memory_effects) {
    if (effect.kind == MemoryEffect::Kind::kZero) continue;
    const BlockCopy& copy = plan.copies[effect.index];
    out << "copy " << copy.num_slots << " of block " << copy.source.value() << " to "
        << copy.target.value() << "\n";
  }
  if (plan.work.empty()) out << "zero " << plan.zeros.size() << " blocks\n";
  for (std::size_t w = 0; w < plan.work.size(); ++w) {
    const WorkItem& item = plan.work[w];
    out << slots_[item.slot.value()] << ": compute " << item.first_position << ".."
        << item.first_position + item.tokens.count - 1;
    if (item.num_without_kv > 0) out << ", " << item.num_without_kv << " without KV";
    if (item.appended_blocks.count > 0) out << ", blocks";
    for (std::uint32_t b = 0; b < item.appended_blocks.count; ++b) {
      out << " " << plan.block_appends[item.appended_blocks.begin + b].block.value();
    }
    std::size_t num_samples = 0;
    for (const SampleRequest& sample : plan.samples) {
      num_samples += plan.rows[sample.row].work == w;
    }
    if (num_samples > 0) out << ", sample";
    if (num_samples > 1) out << " x " << num_samples;
    out << "\n";
  }
  said_ += out.str();
}

void World::Complete(bool is_spoiled) {
  const auto awaited = executor_.Await();
  PAGODA_CHECK(awaited.ok());
  StepResult result = **awaited;
  for (SampleResult& sample : result.samples) sample.finite = !is_spoiled;
  std::vector<SampleOutcome> outcomes(result.samples.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto id = scheduler_->RequestFor(result.samples[i]);
    if (!id.has_value()) continue;
    if (is_spoiled) {
      outcomes[i].finish = FinishReason::kNonFinite;
      continue;
    }
    const NewRequest& request = scheduler_->request(*id);
    outcomes[i].num_accepted = 1;
    const std::int32_t length = request.choice(result.samples[i].choice).num_known() + 1;
    if (length == request.prompt_length() + request.max_tokens()) {
      outcomes[i].finish = FinishReason::kLength;
    }
  }
  scheduler_->Complete(result, outcomes);
  completed_ = submitted_.front()->job;
  submitted_.pop_front();
}

void World::Fence() { scheduler_->Fence(completed_); }

void World::Fail() {
  PAGODA_CHECK(executor_.Await().ok());
  const StepPlan& plan = *submitted_.front();
  submitted_.pop_front();
  PAGODA_CHECK_MSG(submitted_.empty(), "stories fail one step at a time");
  executor_.Spoil(plan);
  scheduler_->Fail(plan.job);
  scheduler_->Fence(plan.job);
}

void World::RunToTheEnd() {
  for (int i = 0; i < 100'000; ++i) {
    while (static_cast<int>(submitted_.size()) < config_.max_in_flight && Step(/*aloud=*/false)) {
    }
    if (submitted_.empty()) break;
    Complete();
    Fence();
    scheduler_->CheckInvariants();
    TakeFinished();
  }
}

void World::TakeFinished() {
  std::vector<FinishEvent> events;
  scheduler_->TakeFinished(events);
  for (FinishEvent& event : events) {
    const std::string& name = names_[event.request.id.value() - 1];
    said_ += name + ": ended " + NameOf(event.reason) + "\n";
    const auto prompt = static_cast<std::size_t>(event.request.prompt_length());
    for (std::uint32_t c = 0; c < event.request.num_choices(); ++c) {
      const auto all = std::span<const base::TokenId>(event.request.tokens(c));
      if (all.size() == prompt) continue;
      const auto solo =
          oracle_.Answer(all.first(prompt), event.request.sampling(), all.size() - prompt, c);
      PAGODA_CHECK_MSG(std::ranges::equal(all.subspan(prompt), solo), "differs from the solo run");
    }
    ended_.emplace(name, std::move(event));
  }
}

std::span<const base::TokenId> World::answer(const std::string& name, std::uint32_t choice) const {
  const NewRequest& request = ended_.at(name).request;
  return std::span<const base::TokenId>(request.tokens(choice))
      .subspan(static_cast<std::size_t>(request.prompt_length()));
}

base::RequestId World::IdOf(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  PAGODA_CHECK(found != names_.end());
  return base::RequestId(static_cast<std::uint64_t>(found - names_.begin()) + 1);
}

}  // namespace pagoda::scheduler::testing
