// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/vf.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/slice_page.h"

namespace vgpud::daemon {
namespace {

// On a busy host a process may wait for seconds before it computes at all.
constexpr Ns kStartLimit = std::chrono::seconds{30};
constexpr Ns kCloseLimit = std::chrono::seconds{2};
constexpr Ns kKillLimit = std::chrono::seconds{3};

constexpr const char* kStateNames[] = {"starting", "ready", "parked", "failed", "closing"};
constexpr const char* kPausedReason = "paused by an operator (back with: vgpuctl resume NAME)";
constexpr const char* kParkedReason = "repeated hangs (back with: vgpuctl reset NAME)";
constexpr const char* kStuckReason = "its processes cannot be killed";
// vf_link::Info::vf_state takes VGPU_VF_* of the guest ABI.
constexpr uint32_t kGuestSeesReady = 1;
constexpr uint32_t kGuestSeesParked = 2;

const char* NameOf(Vf::State state) { return kStateNames[static_cast<size_t>(state)]; }

// Adds an event to the chronicle.
void Tell(const VfSurroundings& around, const VfSpec& spec, const char* kind, std::string text) {
  around.chronicle->Add({.kind = kind, .vf = spec.name, .gpu = around.gpu_name, .text = std::move(text)});
}

VfSpec WithNumber(VfSpec spec, VfId id) {
  spec.view.vf = id;
  return spec;
}

}  // namespace

Vf::Vf(VfSurroundings& around, VfId id, const Uuid& uuid, const VfSpec& spec)
    : around_(around),
      id_(id),
      spec_(WithNumber(spec, id)),
      uuid_(uuid),
      keeping_(around.keeper, spec.name),
      spawner_(around, id, spec),
      server_(around, spawner_, keeping_, definition(),
              {.on_message = [this](vf_link::Kind kind, const Message& message) { return OnMessage(kind, message); },
               .on_lost = [this](const std::string& why) { Lose(why); },
               .on_ended = [this](const std::string& how, bool without_vm) { OnServerEnded(how, without_vm); }}),
      executors_(around, spawner_, keeping_, id, spec,
                 {.answer = [this](const vf_link::Executor& answer,
                                   std::span<const int> fds) { return server_.Send(answer, fds); },
                  .on_fault = [this] { server_.CountFault(); },
                  .on_ended = [this] { MaybeClosed(); },
                  .priority = [this] { return cpu_.WhatOthersGet(); }}),
      cpu_(around, spec.name, spawner_.cgroup(), executors_, server_) {}

Vf::~Vf() {
  keeping_.Forget();
  // With some of them it would wait for ever: vgpud ends without them.
  if (close_forced_) {
    server_.Abandon();
    executors_.AbandonAll();
  }
  for (const char* suffix : {".sock", ".channel.sock"}) ::unlink(Path(suffix).c_str());
}

std::string Vf::Path(const char* suffix) const {
  return fmt::format("{}/vf/{}{}", around_.runtime_dir, spec_.name, suffix);
}

uint64_t Vf::SliceUs() const { return static_cast<uint64_t>(expected_.slice / std::chrono::microseconds{1}); }

VfSettings Vf::settings() const {
  VfSettings settings{spec_.name, spec_.view};
  settings.view.paused = spec_.view.paused || state_ == State::kParked;
  settings.memory = spec_.memory();
  return settings;
}

VfReport Vf::Report() const {
  const bool paused = spec_.view.paused && state_ == State::kReady;
  const auto now = state_ != State::kFailed ? server_.present() : VfServer::Present{};
  return {.name = spec_.name,
          .gpu = around_.gpu_name,
          .placed = {},
          .revision = RevisionOf(ToText(uuid_), spec_.view, spec_.memory()),
          .uuid = ToText(uuid_),
          .state = paused ? "paused" : NameOf(state_),
          .reason = paused ? kPausedReason : reason_,
          .profile = spec_.profile,
          .transient = spec_.transient,
          .domain = spec_.domain,
          .tenant = spec_.tenant,
          .owner = spec_.owner,
          .view = spec_.view,
          .slice_us = SliceUs(),
          .share = expected_.share,
          .wake_bound_ns = static_cast<uint64_t>(expected_.wake_bound.count()),
          .vram_bytes = spec_.vram_bytes,
          .vram_used_bytes = now.vram_used,
          .host_memory_bytes = spec_.host_memory_bytes,
          .host_memory_used_bytes = now.host_memory_used,
          .executors = executors_.size(),
          .client_connected = now.client_connected,
          .events = server_.events(),
          .kernel_faults = {},
          .server = server_.report(),
          .cpu_ns = static_cast<uint64_t>(cpu_.used().count()),
          .gave_way = cpu_.outside().times(),
          .gave_way_ns = static_cast<uint64_t>(cpu_.outside().over_for().count()),
          .gpu_threads = around_.soft_gpu_threads,
          .vfio_user_socket = Path(".sock"),
          .channel_socket = Path(".channel.sock")};
}

std::vector<ProcessReport> Vf::Processes() const {
  std::vector<ProcessReport> all = executors_.Processes();
  for (ProcessReport& process : all) {
    process.vf = spec_.name;
    process.gpu = around_.gpu_name;
    process.domain = spec_.domain.name;
    process.tenant = spec_.tenant;
    process.user = spec_.owner.user ? spec_.owner.user : spec_.user;
  }
  return all;
}

void Vf::ArmDeadline(Ns limit, std::function<void()> passed) {
  deadline_ = around_.loop.Timer(std::move(passed));
  deadline_->Arm(limit);
}

void Vf::Start(Reply<uint64_t> done) {
  started_ = std::move(done);
  if (const auto launched = Launch(); !launched) Lose(launched.error().context);
}

Result<void> Vf::Launch() {
  TRY(server_.Launch(Path(".sock"), Path(".channel.sock")));
  ArmDeadline(kStartLimit, [this] {
    if (state_ == State::kStarting)
      Lose(fmt::format("vgpud-vf did not answer within {} s", kStartLimit / std::chrono::seconds{1}));
  });
  slices_ = TRY(MakeSliceMemory(spec_.name));
  const int pages[] = {slices_.grant_fd.get(), slices_.slots_fd.get()};
  return server_.Configure(static_cast<uint32_t>(SliceUs()), spec_.view.weight, pages);
}

void Vf::Resume(KeptVf kept, SliceMemory slices, std::shared_ptr<VfLedger> ledger, Reply<uint64_t> done) {
  started_ = std::move(done);
  ledger_ = std::move(ledger);
  ledger_->SetPast(past_);
  slices_ = std::move(slices);
  if (const auto going_on = GoOn(std::move(kept)); !going_on) Lose(going_on.error().context);
}

Result<void> Vf::GoOn(KeptVf kept) {
  const uint32_t link_version = kept.note.link_version;
  TRY(server_.Adopt(kept));
  JoinGpu();
  TRY(executors_.Adopt(kept));
  return server_.Listen(link_version);
}

Result<void> Vf::OnMessage(vf_link::Kind kind, const Message& message) {
  static constexpr struct {
    vf_link::Kind kind;
    Result<void> (*handle)(Vf&, const Message&);
  } kHandlers[] = {
      {vf_link::Kind::kHello, [](Vf& vf, const Message& m) { return vf.OnHello(m); }},
      {vf_link::Kind::kNeedExecutor, [](Vf& vf, const Message& m) { return vf.executors_.OnNeeded(m); }},
      {vf_link::Kind::kChannelClosed, [](Vf& vf, const Message& m) { return vf.executors_.OnChannelClosed(m); }},
      {vf_link::Kind::kKillExecutor, [](Vf& vf, const Message& m) { return vf.executors_.OnKill(m); }},
      {vf_link::Kind::kChannel, [](Vf& vf, const Message& m) { return vf.executors_.OnChannel(m); }},
      {vf_link::Kind::kInStep, [](Vf& vf, const Message& m) { return vf.executors_.OnInStep(m); }},
  };
  for (const auto& handler : kHandlers)
    if (handler.kind == kind) return handler.handle(*this, message);
  return Fail(std::errc::bad_message, fmt::format("message of kind {}", static_cast<uint32_t>(kind)));
}

Result<void> Vf::OnHello(const Message& message) {
  if (in_gpu_) return Fail(std::errc::bad_message, "unexpected Hello");
  if (state_ != State::kStarting) return {};
  const uint32_t version = TRY(message.As<vf_link::Hello>()).version;
  server_.Watch(version);
  Keep(version);
  JoinGpu();
  return {};
}

// A vgpud-vf that was not there yet ends with us, as nobody waits for it.
void Vf::Keep(uint32_t link_version) {
  if (!keeping_.on()) return;
  KeptVf kept;
  kept.note = {.link_version = link_version,
               .slice_version = kSliceVersion,
               .pid = server_.pid(),
               .number = Raw(id_),
               .uuid = uuid_};
  if (const auto copied = Fill(&kept); !copied) {
    LOG(kError, "vf={}: it ends when vgpud ends: {}", spec_.name, copied.error().context);
    return;
  }
  keeping_.Keep(kept);
}

Result<void> Vf::Fill(KeptVf* kept) {
  ledger_ = TRY(VfLedger::Make(spec_.name));
  ledger_->SetPast(past_);
  TRY(server_.GiveTo(kept));
  kept->grant = std::move(slices_.writable_grant_fd);
  kept->slots = TRY(Dup(slices_.slots_fd.get()));
  kept->ledger = TRY(Dup(ledger_->fd()));
  return {};
}

void Vf::JoinGpu() {
  in_gpu_ = true;
  slices_.writable_grant_fd.Reset();
  executors_.Open(std::move(slices_.grant_fd), std::move(slices_.slots_fd));
  const auto joined = [weak = weak_from_this()](uint64_t round) {
    if (const auto self = weak.lock()) self->OnJoined(round);
  };
  around_.gpu.AddVf(spec_.view, spec_.name, std::move(slices_), joined, ledger_);
}

void Vf::OnJoined(uint64_t round) {
  if (state_ != State::kStarting) return;
  state_ = State::kReady;
  if (ledger_ != nullptr && ledger_->parked()) OnParked();
  SendInfo();  // settings may have changed since it was configured
  FinishStart(round);
}

void Vf::FinishStart(ApiResult<uint64_t> result) {
  deadline_.reset();
  if (const auto done = std::exchange(started_, nullptr)) done(std::move(result));
}

void Vf::OnParked() {
  if (state_ != State::kReady) return;
  LOG(kError, "vf={}: parked after repeated hangs; `vgpuctl reset {}` puts it back", spec_.name, spec_.name);
  Tell(around_, spec_, event_kind::kParked, kParkedReason);
  state_ = State::kParked;
  reason_ = kParkedReason;
  if (ledger_ != nullptr) ledger_->SetParked(true);
  SendInfo();
  around_.on_turnout();
}

void Vf::ResetByOperator(Reply<uint64_t> done) {
  if (state_ != State::kReady && state_ != State::kParked)
    return done(ApiFail(ErrorKind::kConflict, state_ == State::kFailed
                                                  ? fmt::format("vf \"{}\" is failed: {}", spec_.name, reason_)
                                                  : fmt::format("vf \"{}\" is {}: it cannot be reset; try again later",
                                                                spec_.name, NameOf(state_))));
  if (const auto sent = server_.Send(vf_link::Plain{vf_link::Kind::kReset}); !sent)
    return done(ApiFail(ErrorKind::kFailed,
                        fmt::format("vf \"{}\": vgpud-vf takes no messages: {}", spec_.name, sent.error().context)));
  state_ = State::kReady;
  reason_.clear();
  if (ledger_ != nullptr) ledger_->SetParked(false);
  SendInfo();
  around_.on_turnout();
  around_.gpu.Reinstate(id_, [done](uint64_t round) { done(round); });
}

void Vf::OnServerEnded(const std::string& how, bool without_vm) {
  if (state_ != State::kClosing) {
    crashed_without_vm_ = state_ == State::kReady && without_vm;
    Lose(fmt::format("vgpud-vf ended ({})", how));
  }
  MaybeClosed();
}

void Vf::Lose(const std::string& why) {
  if (state_ == State::kFailed || state_ == State::kClosing) return;
  LOG(kError, "vf={}: {}", spec_.name, why);
  Tell(around_, spec_, event_kind::kFailed, why);
  const bool served = state_ != State::kStarting;
  state_ = State::kFailed;
  reason_ = fmt::format("{}; vgpuctl reset --force {} makes it again with its settings; then restart its VM", why,
                        spec_.name);
  executors_.Refuse();
  executors_.EndAll();
  server_.Kill();
  LeaveGpu();
  around_.on_turnout();
  if (served) around_.on_failed(spec_.name);
  FinishStart(ApiFail(ErrorKind::kFailed, fmt::format("vf \"{}\" did not start: {}", spec_.name, why)));
}

void Vf::Close(std::function<void()> closed, std::function<void()> stuck) {
  const bool was_starting = state_ == State::kStarting;
  state_ = State::kClosing;
  reason_.clear();
  closed_ = std::move(closed);
  stuck_ = std::move(stuck);
  executors_.Refuse();
  around_.on_turnout();
  if (was_starting)
    FinishStart(ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" was destroyed while it started", spec_.name)));
  if (!in_gpu_) return AfterRemoval();
  LeaveGpu();
}

void Vf::LeaveGpu() {
  if (!in_gpu_ || std::exchange(leaving_gpu_, true)) return;
  around_.gpu.RemoveVf(id_, [weak = weak_from_this()](uint64_t) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->in_gpu_ = false;
    if (self->state_ == State::kClosing) self->AfterRemoval();
  });
}

void Vf::AfterRemoval() {
  (void)server_.Send(vf_link::Plain{vf_link::Kind::kShutdown});  // a deaf one is killed by the deadline
  ArmDeadline(kCloseLimit, [this] { OnCloseDeadline(); });
  MaybeClosed();
}

void Vf::OnCloseDeadline() {
  if (std::exchange(close_forced_, true)) {
    LOG(kError,
        "vf={}: its processes do not end although they were killed: something outside holds them in the kernel. Its "
        "name and user stay taken until they end",
        spec_.name);
    Tell(around_, spec_, event_kind::kAlarm,
         "its processes do not end although they were killed: something outside holds them in the kernel");
    reason_ = kStuckReason;
    if (const auto stuck = std::exchange(stuck_, nullptr)) stuck();
    return;
  }
  LOG(kWarning, "vf={}: processes did not end when told to: killed", spec_.name);
  Tell(around_, spec_, event_kind::kKilled, "its processes did not end when told to");
  server_.Kill();
  executors_.KillAll();
  deadline_->Arm(kKillLimit);
}

void Vf::MaybeClosed() {
  if (state_ != State::kClosing || in_gpu_ || server_.has_process() || !executors_.empty()) return;
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
}

std::optional<ApiError> Vf::Unchangeable() const {
  if (state_ == State::kReady || state_ == State::kParked) return std::nullopt;
  return ApiError{
      ErrorKind::kConflict, fmt::format("vf \"{}\" is {}: nothing can be changed", spec_.name, NameOf(state_)), {}};
}

void Vf::Adopt(const VfView& view) {
  const uint32_t weight_before = spec_.view.weight;
  spec_.view = view;
  if (view.weight != weight_before) SendInfo();
}

std::optional<ApiError> Vf::WhyNotMore() const {
  if (executors_.empty() || around_.choice.is_cuda() || spawner_.cgroup().limits_memory()) return std::nullopt;
  return ApiError{
      ErrorKind::kConflict,
      fmt::format(
          "vf \"{}\": without a control group for memory (vgpuctl gpu says why there is none) only the limit of "
          "each program's executor holds, and that cannot grow while it runs: end its {} programs first",
          spec_.name, executors_.size()),
      {}};
}

void Vf::Adopt(const VfMemory& memory, const VfMemory& limit) {
  spec_.vram_bytes = memory.vram_bytes;
  spec_.host_memory_bytes = memory.host_memory_bytes;
  executors_.SetMemory(memory);
  spawner_.cgroup().LimitMemory(
      VfCgroup::LimitsFor(limit.vram_bytes, limit.host_memory_bytes, around_.soft_gpu_threads).memory_bytes);
}

void Vf::SetExpectedShare(const ExpectedShare& expected) {
  const uint64_t slice_before = SliceUs();
  expected_ = expected;
  if (SliceUs() != slice_before && state_ != State::kStarting) SendInfo();
}

void Vf::Charge(const VfAccount& account, double granted_cpus, TimePoint now) {
  const uint32_t percent = use_.Look(account.received_ns - std::min(account.received_ns, account.anticipated_ns), now);
  if (std::exchange(gpu_percent_, percent) != percent && state_ != State::kStarting) SendInfo();
  cpu_.Charge(account, granted_cpus, gpu_percent_ != 0, now);
}

void Vf::SendInfo() {
  if (!server_.has_link()) return;
  vf_link::Info info;
  info.slice_us = static_cast<uint32_t>(SliceUs());
  info.weight = spec_.view.weight;
  info.gpu_percent = gpu_percent_;
  info.vf_state = state_ == State::kParked ? kGuestSeesParked : kGuestSeesReady;
  if (const auto sent = server_.Send(info); !sent)
    LOG(kWarning, "vf={}: the guest's view of weight and slice is not up to date: {}", spec_.name,
        sent.error().context);
}

}  // namespace vgpud::daemon
