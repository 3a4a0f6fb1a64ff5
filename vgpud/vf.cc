#include "vgpud/vf.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/slice_page.h"

namespace vgpud {
namespace {

constexpr int kMessagesPerTurn = 8;
constexpr Ns kStartLimit = std::chrono::seconds{5};
constexpr Ns kCloseLimit = std::chrono::seconds{2};
constexpr Ns kExecutorExitLimit = std::chrono::seconds{1};
constexpr size_t kMaxExecutorProcesses = 2 * kMaxExecutors;  // the second half only while the first exits

constexpr int kExecutorNice = -10;

constexpr const char* kStateNames[] = {"starting", "ready", "parked", "failed", "closing"};
constexpr const char* kPausedReason = "paused by an operator (back with: vgpuctl resume NAME)";
constexpr const char* kParkedReason = "repeated hangs (back with: vgpuctl reset NAME)";
// vf_link::Info::vf_state takes VGPU_VF_* of the guest ABI.
constexpr uint32_t kGuestSeesReady = 1;
constexpr uint32_t kGuestSeesParked = 2;

// Destroys `object` after the running callback: a watch must not be destroyed inside its own.
template <class T>
void DestroyLater(EventLoop& loop, std::shared_ptr<T> object) {
  loop.Post([object] {});
}
void DestroyLater(EventLoop& loop, EventLoop::WatchPtr watch) {
  if (watch != nullptr) DestroyLater(loop, std::shared_ptr<EventLoop::Watch>(std::move(watch)));
}

Result<Mapping> MapSlicePage(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0 || st.st_size != static_cast<off_t>(kSlicePageBytes))
    return Fail(std::errc::bad_message,
                fmt::format("slice page has {} bytes instead of {}", st.st_size, kSlicePageBytes));
  if ((::fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    return Fail(std::errc::bad_message, "slice page is not sealed against shrinking");
  Mapping page = TRY(Mapping::Shared(fd, 0, kSlicePageBytes));
  if (page.At<SlicePage>(0)->magic != SlicePage::kMagic || page.At<SlicePage>(0)->version != 1)
    return Fail(std::errc::bad_message, "slice page has an unknown magic or version (vgpud-vf of another build?)");
  return page;
}

}  // namespace

Vf::Vf(VfSurroundings& around, VfId id, const Uuid& uuid, const VfSpec& spec)
    : around_(around), id_(id), spec_(spec), uuid_(uuid) {
  spec_.view.vf = id;
}

Vf::~Vf() {
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

VfReport Vf::Report() const {
  const bool paused = spec_.view.paused && state_ == State::kReady;
  return {.name = spec_.name,
          .uuid = ToText(uuid_),
          .state = paused ? "paused" : kStateNames[static_cast<size_t>(state_)],
          .reason = paused ? kPausedReason : reason_,
          .view = spec_.view,
          .slice_us = SliceUs(),
          .share = outlook_.share,
          .vram_bytes = spec_.vram_bytes,
          .vram_used_bytes = vram_used_,
          .executors = static_cast<uint32_t>(executors_.size()),
          .client_connected = client_connected_,
          .events = events_,
          .vfio_user_socket = Path(".sock"),
          .channel_socket = Path(".channel.sock")};
}

uint64_t Vf::SliceUs() const { return static_cast<uint64_t>(outlook_.slice / std::chrono::microseconds{1}); }

void Vf::Start(Reply<uint64_t> done) {
  started_ = std::move(done);
  if (auto launched = Launch(); !launched) Fail(launched.error().context);
}

Result<void> Vf::Launch() {
  SocketPair pair = TRY(MakeSeqpacketPair());
  std::vector<std::string> arguments = {"vgpud-vf",    "--name",           spec_.name,           "--vfio-socket",
                                        Path(".sock"), "--channel-socket", Path(".channel.sock")};
  for (size_t e = 0; e < kGuardedEvents; ++e)
    arguments.push_back(fmt::format("--event-budget={}={}", kEventNames[e], around_.event_budgets[e]));
  process_ = std::make_unique<Child>(TRY(Child::Spawn(around_.vf_program, arguments, pair.b, vf_link::kVfLinkFd)));
  link_ = std::move(pair.a);
  link_watch_ = around_.loop.OnReadable(link_.get(), [this] { OnLink(); });
  process_watch_ = around_.loop.OnReadable(process_->pidfd(), [this] { OnProcessEnded(); });
  deadline_ = around_.loop.Timer([this] {
    if (state_ == State::kStarting)
      Fail(fmt::format("vgpud-vf did not answer within {} s", kStartLimit / std::chrono::seconds{1}));
  });
  deadline_->Arm(kStartLimit);

  vf_link::Configure configure;
  configure.vram_bytes = spec_.vram_bytes;
  configure.slice_us = static_cast<uint32_t>(SliceUs());
  configure.weight = spec_.view.weight;
  static_assert(sizeof configure.uuid == sizeof uuid_);
  std::memcpy(configure.uuid, uuid_.data(), uuid_.size());
  std::memcpy(configure.name, spec_.name.data(), std::min(spec_.name.size(), sizeof configure.name - 1));
  const int fds[] = {around_.sched_event};
  return SendStruct(link_.get(), configure, fds);
}

void Vf::OnLink() {
  if (!link_watch_) return;
  // What is left comes with the next turn of the loop: others wait for theirs.
  for (int served = 0; served < kMessagesPerTurn; ++served) {
    auto message = ReceiveMessage(link_.get());
    if (!message && message.error().code == std::errc::resource_unavailable_try_again) return;
    Result<void> handled = message ? OnMessage(*message) : Result<void>(tl::unexpected(message.error()));
    if (handled) continue;
    DestroyLater(around_.loop, std::move(link_watch_));
    if (handled.error().code != std::errc::not_connected)
      Fail(fmt::format("vgpud-vf broke the link protocol: {}", handled.error().context));
    return;  // a mere hang-up is reported by the end of the process
  }
}

Result<void> Vf::OnMessage(const Message& message) {
  static constexpr struct {
    vf_link::Kind kind;
    Result<void> (Vf::*handle)(const Message&);
  } kHandlers[] = {
      {vf_link::Kind::kHello, &Vf::OnHello},
      {vf_link::Kind::kNeedExecutor, &Vf::OnNeedExecutor},
      {vf_link::Kind::kChannelClosed, &Vf::OnChannelClosed},
      {vf_link::Kind::kClient, &Vf::OnClient},
      {vf_link::Kind::kUsage, &Vf::OnUsage},
      {vf_link::Kind::kEvents, &Vf::OnEvents},
  };
  const auto kind = TRY(message.As<vf_link::Kind>());
  for (const auto& handler : kHandlers)
    if (handler.kind == kind) return (this->*handler.handle)(message);
  return vgpud::Fail(std::errc::bad_message, fmt::format("message of unknown kind {}", static_cast<uint32_t>(kind)));
}

Result<void> Vf::OnHello(const Message& message) {
  if (message.fds.size() != 1 || in_gpu_) return vgpud::Fail(std::errc::bad_message, "unexpected Hello");
  Mapping page = TRY(MapSlicePage(message.fds[0].get()));
  if (state_ != State::kStarting) return {};
  in_gpu_ = true;
  around_.gpu.AddVf(spec_.view, spec_.name, std::move(page), [weak = weak_from_this()](uint64_t round) {
    const auto self = weak.lock();
    if (self == nullptr || self->state_ != State::kStarting) return;
    self->state_ = State::kReady;
    self->SendInfo();  // settings may have changed since it was configured
    self->FinishStart(round);
  });
  return {};
}

void Vf::FinishStart(ApiResult<uint64_t> result) {
  DestroyLater(around_.loop, std::move(deadline_));
  if (const auto done = std::exchange(started_, nullptr)) done(std::move(result));
}

Result<void> Vf::OnNeedExecutor(const Message& message) {
  const auto wanted = TRY(message.As<vf_link::Executor>());
  if (wanted.channel >= kMaxExecutors || executors_.count(wanted.generation) != 0)
    return vgpud::Fail(std::errc::bad_message,
                       fmt::format("executor for channel {} asked twice or out of range", wanted.channel));
  if (!in_gpu_) return vgpud::Fail(std::errc::bad_message, "executor asked before Hello");
  const auto started = state_ == State::kClosing || state_ == State::kFailed
                           ? Result<void>(vgpud::Fail(std::errc::operation_canceled, "the VF is closing"))
                           : StartExecutor(wanted);
  if (started) return {};
  LOG_LIMITED(limiter_, kError, "vf={} channel={} pid={}: no executor: {}", spec_.name, wanted.channel,
              wanted.client_pid, started.error().context);
  vf_link::Executor failed = wanted;
  failed.kind = vf_link::Kind::kExecutorFailed;
  return SendStruct(link_.get(), failed);
}

Result<void> Vf::StartExecutor(const vf_link::Executor& wanted) {
  if (executors_.size() >= kMaxExecutorProcesses)
    return vgpud::Fail(std::errc::resource_unavailable_try_again,
                       fmt::format("{} executors already", executors_.size()));
  SocketPair pair = TRY(MakeSeqpacketPair());
  auto executor =
      std::make_shared<Executor>(TRY(Child::Spawn(around_.exec_program,
                                                  {"vgpud-exec", "--backend", around_.gpu_kind, "--vf", spec_.name,
                                                   "--threads", std::to_string(around_.soft_gpu_threads)},
                                                  pair.b, 3)),
                                 wanted.channel);
  // It must be on a core to see the end of its slice. Refused to ordinary users, harmlessly.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(executor->child.pid()), kExecutorNice);
  const uint64_t generation = wanted.generation;
  around_.gpu.AddExecutor(id_, wanted.channel, {generation, executor->child.pid(), TRY(Dup(executor->child.pidfd()))});
  executor->ended =
      around_.loop.OnReadable(executor->child.pidfd(), [this, generation] { OnExecutorEnded(generation); });
  executors_.emplace(generation, executor);

  vf_link::Executor answer = wanted;
  answer.kind = vf_link::Kind::kExecutor;
  const int fds[] = {pair.a.get(), executor->child.pidfd()};
  LOG(kDebug, "vf={} channel={} executor pid={} for process {}", spec_.name, wanted.channel, executor->child.pid(),
      wanted.client_pid);
  return SendStruct(link_.get(), answer, fds);
}

Result<void> Vf::OnChannelClosed(const Message& message) {
  const auto closed = TRY(message.As<vf_link::Executor>());
  const auto it = executors_.find(closed.generation);
  if (it == executors_.end()) return {};  // it ended first
  Executor& executor = *it->second;
  if (std::exchange(executor.told_to_exit, true)) return {};
  executor.too_long = around_.loop.Timer([this, child = &executor.child] {
    LOG_LIMITED(limiter_, kWarning, "vf={} executor pid={} did not exit when told to: killed", spec_.name,
                child->pid());
    child->Kill(SIGKILL);
  });
  executor.too_long->Arm(kExecutorExitLimit);
  return {};
}

void Vf::OnExecutorEnded(uint64_t generation) {
  const auto it = executors_.find(generation);
  if (it == executors_.end()) return;
  const auto ending = it->second->child.Reap();
  if (!ending) return;
  const Executor& executor = *it->second;
  if (!ending->clean && !executor.told_to_exit)
    LOG_LIMITED(limiter_, kWarning,
                "vf={} channel={}: executor ended by {}; its guest process gets an error, the VF lives on", spec_.name,
                executor.channel, ending->text);
  around_.gpu.RemoveExecutor(id_, executor.channel, generation);
  DestroyLater(around_.loop, it->second);
  executors_.erase(it);
  MaybeClosed();
}

Result<void> Vf::OnClient(const Message& message) {
  client_connected_ = TRY(message.As<vf_link::Client>()).connected != 0;
  return {};
}

Result<void> Vf::OnUsage(const Message& message) {
  vram_used_ = TRY(message.As<vf_link::Usage>()).vram_used;
  return {};
}

Result<void> Vf::OnEvents(const Message& message) {
  events_ = TRY(message.As<vf_link::Events>());
  return {};
}

void Vf::OnProcessEnded() {
  const auto ending = process_->Reap();
  if (!ending) return;
  DestroyLater(around_.loop, std::move(process_watch_));
  DestroyLater(around_.loop, std::move(link_watch_));
  DestroyLater(around_.loop, std::shared_ptr<Child>(std::move(process_)));
  link_.Reset();
  if (state_ != State::kClosing) {
    Fail(fmt::format("vgpud-vf ended ({}); destroy and create the VF again, and restart its VM", ending->text));
  }
  MaybeClosed();
}

// The VF is lost: out of the rotation, executors ended; it stays listed until somebody destroys it.
void Vf::Fail(const std::string& why) {
  if (state_ == State::kFailed || state_ == State::kClosing) return;
  LOG(kError, "vf={}: {}", spec_.name, why);
  state_ = State::kFailed;
  reason_ = why;
  client_connected_ = false;
  for (auto& [generation, executor] : executors_) {
    executor->told_to_exit = true;
    executor->child.Kill(SIGKILL);
  }
  if (process_ != nullptr) process_->Kill(SIGKILL);
  LeaveGpu();
  around_.on_turnout();
  FinishStart(ApiFail(500, fmt::format("vf \"{}\" did not start: {}", spec_.name, why)));
}

void Vf::SendInfo() {
  if (!link_) return;
  vf_link::Info info;
  info.slice_us = static_cast<uint32_t>(SliceUs());
  info.weight = spec_.view.weight;
  info.vf_state = state_ == State::kParked ? kGuestSeesParked : kGuestSeesReady;
  if (const auto sent = SendStruct(link_.get(), info); !sent)
    LOG(kWarning, "vf={}: the guest's view of weight and slice is not up to date: {}", spec_.name,
        sent.error().context);
}

void Vf::SetOutlook(const Outlook& outlook) {
  const uint64_t slice_before = SliceUs();
  outlook_ = outlook;
  if (SliceUs() != slice_before && state_ != State::kStarting) SendInfo();
}

std::optional<ApiError> Vf::Unchangeable() const {
  if (state_ == State::kReady || state_ == State::kParked) return std::nullopt;
  return ApiError{
      409,
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
  SendInfo();
  around_.on_turnout();
}

void Vf::ResetByOperator(Reply<uint64_t> done) {
  if (state_ != State::kReady && state_ != State::kParked)
    return done(ApiFail(409, fmt::format("vf \"{}\" is {}: it cannot be reset; destroy it and create it again",
                                         spec_.name, kStateNames[static_cast<size_t>(state_)])));
  vf_link::Plain reset;
  reset.kind = vf_link::Kind::kReset;
  if (const auto sent = SendStruct(link_.get(), reset); !sent)
    return done(
        ApiFail(500, fmt::format("vf \"{}\": vgpud-vf takes no messages: {}", spec_.name, sent.error().context)));
  state_ = State::kReady;
  reason_.clear();
  SendInfo();
  around_.on_turnout();
  around_.gpu.Pardon(id_, [done](uint64_t round) { done(round); });
}

void Vf::Close(std::function<void()> closed) {
  const bool was_starting = state_ == State::kStarting;
  state_ = State::kClosing;
  reason_.clear();
  closed_ = std::move(closed);
  around_.on_turnout();
  if (was_starting) FinishStart(ApiFail(409, fmt::format("vf \"{}\" was destroyed while it started", spec_.name)));
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
  if (link_) (void)SendStruct(link_.get(), shutdown);  // a deaf one is killed by the deadline
  deadline_ = around_.loop.Timer([this] {
    LOG(kWarning, "vf={}: processes did not end when told to: killed", spec_.name);
    if (process_ != nullptr) process_->Kill(SIGKILL);
    for (auto& [generation, executor] : executors_) executor->child.Kill(SIGKILL);
  });
  deadline_->Arm(kCloseLimit);
  MaybeClosed();
}

void Vf::MaybeClosed() {
  if (state_ != State::kClosing || in_gpu_ || process_ != nullptr || !executors_.empty()) return;
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
}

}  // namespace vgpud
