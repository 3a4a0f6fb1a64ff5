// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/vf.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "vgpud/host/cgroup_file.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kCloseLimit = std::chrono::seconds{2};
constexpr Ns kKillLimit = std::chrono::seconds{3};

constexpr const char* kStateNames[] = {"starting", "ready", "parked", "failed", "closing"};
constexpr const char* kPausedReason = "paused by an operator (back with: vgpuctl resume NAME)";
constexpr const char* kParkedReason = "repeated hangs (back with: vgpuctl reset NAME)";
// vf_link::Info::vf_state takes VGPU_VF_* of the guest ABI.
constexpr uint32_t kGuestSeesReady = 1;
constexpr uint32_t kGuestSeesParked = 2;

}  // namespace

Vf::Vf(VfSurroundings& around, VfId id, const Uuid& uuid, const VfSpec& spec)
    : around_(around),
      id_(id),
      spec_(spec),
      uuid_(uuid),
      log_(spec.name, &LogRelayed, spec.tenant, around.logs),
      cgroup_(around.cgroups, spec.name,
              VfCgroup::LimitsFor(spec.vram_bytes, spec.host_memory_bytes, around.soft_gpu_threads)) {
  if (!cgroup_.problem().empty()) LOG(kWarning, "vf={}: not all limits are set: {}", spec.name, cgroup_.problem());
  spec_.view.vf = id;
}

Vf::~Vf() {
  if (around_.keeper != nullptr) ForgetVf(*around_.keeper, spec_.name);
  // With some of them it would wait for ever: vgpud ends without them.
  if (close_forced_) {
    if (process_ != nullptr) process_->Abandon();
    for (auto& [generation, executor] : executors_) executor->child.Abandon();
  }
  for (const char* suffix : {".sock", ".channel.sock"}) ::unlink(Path(suffix).c_str());
}

std::string Vf::Path(const char* suffix) const {
  return fmt::format("{}/vf/{}{}", around_.runtime_dir, spec_.name, suffix);
}

VfSettings Vf::settings() const {
  VfSettings settings{spec_.name, spec_.view};
  settings.view.paused = spec_.view.paused || state_ == State::kParked;
  return settings;
}

VfDefinition Vf::definition() const { return {spec_, uuid_, Raw(id_), Path(".sock")}; }

VfReport Vf::Report() const {
  const bool paused = spec_.view.paused && state_ == State::kReady;
  const Present now = link_ != nullptr && state_ != State::kFailed ? present_ : Present{};
  return {.name = spec_.name,
          .gpu = around_.gpu_name,
          .placed = {},
          .revision = revision(),
          .uuid = ToText(uuid_),
          .state = paused ? "paused" : kStateNames[static_cast<size_t>(state_)],
          .reason = paused ? kPausedReason : reason_,
          .profile = spec_.profile,
          .transient = spec_.transient,
          .domain = spec_.domain,
          .tenant = spec_.tenant,
          .view = spec_.view,
          .slice_us = SliceUs(),
          .share = expected_.share,
          .wake_bound_ns = static_cast<uint64_t>(expected_.wake_bound.count()),
          .vram_bytes = spec_.vram_bytes,
          .vram_used_bytes = now.vram_used,
          .host_memory_bytes = spec_.host_memory_bytes,
          .host_memory_used_bytes = now.host_memory_used,
          .executors = static_cast<uint32_t>(executors_.size()),
          .client_connected = now.client_connected,
          .events = events_,
          .server = ReportServer(),
          .cpu_ns = static_cast<uint64_t>(CpuTime().count()),
          .gave_way = outside_.times(),
          .gave_way_ns = static_cast<uint64_t>(outside_.over_for().count()),
          .gpu_threads = around_.soft_gpu_threads,
          .vfio_user_socket = Path(".sock"),
          .channel_socket = Path(".channel.sock")};
}

uint64_t Vf::SliceUs() const { return static_cast<uint64_t>(expected_.slice / std::chrono::microseconds{1}); }

void Vf::Start(Reply<uint64_t> done) {
  started_ = std::move(done);
  if (auto launched = Launch(); !launched) Fail(launched.error().context);
}

// The VF is lost: out of the rotation, executors ended; it stays listed until somebody destroys it.
void Vf::Fail(const std::string& why) {
  if (state_ == State::kFailed || state_ == State::kClosing) return;
  LOG(kError, "vf={}: {}", spec_.name, why);
  const bool served = state_ != State::kStarting;
  state_ = State::kFailed;
  reason_ = why;
  for (auto& [generation, executor] : executors_) {
    executor->told_to_exit = true;
    executor->child.Kill(SIGKILL);
  }
  if (process_ != nullptr) process_->Kill(SIGKILL);
  LeaveGpu();
  around_.on_turnout();
  if (served) around_.on_failed(spec_.name);
  FinishStart(ApiFail(ErrorKind::kFailed, fmt::format("vf \"{}\" did not start: {}", spec_.name, why)));
}

void Vf::SendInfo() {
  if (link_ == nullptr) return;
  vf_link::Info info;
  info.slice_us = static_cast<uint32_t>(SliceUs());
  info.weight = spec_.view.weight;
  info.gpu_percent = gpu_percent_;
  info.vf_state = state_ == State::kParked ? kGuestSeesParked : kGuestSeesReady;
  if (const auto sent = link_->Send(info); !sent)
    LOG(kWarning, "vf={}: the guest's view of weight and slice is not up to date: {}", spec_.name,
        sent.error().context);
}

void Vf::ShowUse(const VfAccount& account, TimePoint now) {
  const uint32_t percent = use_.Look(account.received_ns - std::min(account.received_ns, account.anticipated_ns), now);
  if (std::exchange(gpu_percent_, percent) != percent && state_ != State::kStarting) SendInfo();
}

void Vf::SetExpectedShare(const ExpectedShare& expected) {
  const uint64_t slice_before = SliceUs();
  expected_ = expected;
  if (SliceUs() != slice_before && state_ != State::kStarting) SendInfo();
}

std::optional<ApiError> Vf::Unchangeable() const {
  if (state_ == State::kReady || state_ == State::kParked) return std::nullopt;
  return ApiError{
      ErrorKind::kConflict,
      fmt::format("vf \"{}\" is {}: nothing can be changed", spec_.name, kStateNames[static_cast<size_t>(state_)]),
      {}};
}

void Vf::Adopt(const VfView& view) {
  const uint32_t weight_before = spec_.view.weight;
  spec_.view = view;
  if (view.weight != weight_before) SendInfo();
}

void Vf::OnParked() {
  if (state_ != State::kReady) return;
  LOG(kError, "vf={}: parked after repeated hangs; `vgpuctl reset {}` puts it back", spec_.name, spec_.name);
  state_ = State::kParked;
  reason_ = kParkedReason;
  if (ledger_ != nullptr) ledger_->SetParked(true);
  SendInfo();
  around_.on_turnout();
}

void Vf::ResetByOperator(Reply<uint64_t> done) {
  if (state_ != State::kReady && state_ != State::kParked)
    return done(
        ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" is {}: it cannot be reset; destroy it and create it again",
                                                  spec_.name, kStateNames[static_cast<size_t>(state_)])));
  vf_link::Plain reset;
  reset.kind = vf_link::Kind::kReset;
  if (const auto sent = link_->Send(reset); !sent)
    return done(ApiFail(ErrorKind::kFailed,
                        fmt::format("vf \"{}\": vgpud-vf takes no messages: {}", spec_.name, sent.error().context)));
  state_ = State::kReady;
  reason_.clear();
  if (ledger_ != nullptr) ledger_->SetParked(false);
  SendInfo();
  around_.on_turnout();
  around_.gpu.Reinstate(id_, [done](uint64_t round) { done(round); });
}

void Vf::Close(std::function<void()> closed, std::function<void()> stuck) {
  const bool was_starting = state_ == State::kStarting;
  state_ = State::kClosing;
  reason_.clear();
  closed_ = std::move(closed);
  stuck_ = std::move(stuck);
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
  vf_link::Plain shutdown;
  shutdown.kind = vf_link::Kind::kShutdown;
  if (link_ != nullptr) (void)link_->Send(shutdown);  // a deaf one is killed by the deadline
  deadline_ = around_.loop.Timer([this] { OnCloseDeadline(); });
  deadline_->Arm(kCloseLimit);
  MaybeClosed();
}

void Vf::OnCloseDeadline() {
  if (std::exchange(close_forced_, true)) {
    LOG(kError,
        "vf={}: its processes do not end although they were killed: something outside holds them in the kernel. Its "
        "name and user stay taken until they end",
        spec_.name);
    reason_ = "its processes cannot be killed";
    if (const auto stuck = std::exchange(stuck_, nullptr)) stuck();
    return;
  }
  LOG(kWarning, "vf={}: processes did not end when told to: killed", spec_.name);
  if (process_ != nullptr) process_->Kill(SIGKILL);
  for (auto& [generation, executor] : executors_) executor->child.Kill(SIGKILL);
  deadline_->Arm(kKillLimit);
}

void Vf::MaybeClosed() {
  if (state_ != State::kClosing || in_gpu_ || process_ != nullptr || !executors_.empty()) return;
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
}

}  // namespace vgpud::daemon
