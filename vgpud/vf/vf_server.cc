// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/vf_server.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/compute_capability.h"
#include "base/exec_link.h"
#include "base/units.h"
#include "vgpud/host/let_in.h"

namespace vgpud::daemon {
namespace {

// Of its sockets, in that process.
constexpr int kVfioNumber = 4;
constexpr int kChannelsNumber = 5;
constexpr Ns kQuotasLimit = std::chrono::seconds{10};

std::string Exceeding(const char* what, uint64_t used, uint64_t quota) {
  return used <= quota ? "" : fmt::format(" {} of its {}, not {}", FormatBytes(used), what, FormatBytes(quota));
}

}  // namespace

std::string WhyNotLess(const std::string& vf, const VfMemory& used, const VfMemory& wanted) {
  const std::string vram = Exceeding("memory", used.vram_bytes, wanted.vram_bytes),
                    host = Exceeding("host memory", used.host_memory_bytes, wanted.host_memory_bytes);
  return fmt::format("vf \"{}\": its programs use{}{}{}: end some of them, or give it at least that much", vf, vram,
                     vram.empty() || host.empty() ? "" : " and", host);
}

VfServer::VfServer(const VfSurroundings& around, VfSpawner& spawner, VfKeeping keeping, const VfDefinition& definition,
                   Events events)
    : around_(around),
      spawner_(spawner),
      keeping_(std::move(keeping)),
      definition_(definition),
      to_vf_(std::move(events)),
      quotas_(definition.spec.memory()),
      most_usage_(quotas_) {}

Result<void> VfServer::Launch(const std::string& vfio_socket, const std::string& channel_socket) {
  SocketPair pair = TRY(MakeSeqpacketPair());
  // Bound here: the process itself may not see the directory.
  const UniqueFd vfio = TRY(ListenUnix(vfio_socket, SOCK_STREAM));
  const UniqueFd channels = TRY(ListenUnix(channel_socket, SOCK_SEQPACKET));
  TRY(LetIn(channel_socket, definition_.spec.owner));
  Child::Spec process;
  process.program = around_.vf_program;
  process.arguments = {"vgpud-vf", "--name", definition_.spec.name, fmt::format("--vfio-socket=fd:{}", kVfioNumber),
                       fmt::format("--channel-socket=fd:{}", kChannelsNumber)};
  if (around_.client_memory) process.arguments.push_back("--client-memory");
  for (size_t e = 0; e < kGuardedEvents; ++e)
    process.arguments.push_back(fmt::format("--event-budget={}={}", kEventNames[e], around_.event_budgets[e]));
  process.files = {{pair.b.get(), vf_link::kVfLinkFd}, {vfio.get(), kVfioNumber}, {channels.get(), kChannelsNumber}};
  VfSpawner::Spawned spawned = TRY(spawner_.Spawn(std::move(process)));
  process_ = std::make_unique<Child>(std::move(spawned.child));
  log_ = std::move(spawned.log);
  MakeLink(std::move(pair.a));
  if (!around_.confinement.watch) link_->RefuseFds();
  return {};
}

Result<void> VfServer::Configure(uint32_t slice_us, uint32_t weight, std::span<const int> pages) {
  const auto& [spec, uuid, number, socket] = definition_;
  vf_link::Configure configure;
  configure.watched = around_.confinement.watch;
  configure.vram_bytes = spec.vram_bytes;
  configure.host_memory_bytes = spec.host_memory_bytes;
  configure.slice_us = slice_us;
  configure.weight = weight;
  static_assert(sizeof configure.uuid == sizeof uuid);
  std::memcpy(configure.uuid, uuid.data(), uuid.size());
  std::memcpy(configure.name, spec.name.data(), std::min(spec.name.size(), sizeof configure.name - 1));
  static_assert(sizeof exec_link::kSoftGpuName <= sizeof configure.gpu_name);
  std::memcpy(configure.gpu_name, exec_link::kSoftGpuName, sizeof exec_link::kSoftGpuName);
  configure.capability = TRY(FindComputeCapability(around_.soft_gpu_capability))->number;
  configure.cuda_version = around_.choice.cuda_version;
  const auto sent = link_->Send(configure, pages);
  if (!sent && sent.error().code == std::errc::broken_pipe) return {};  // it has ended, and OnEnded says how
  return sent;
}

Result<void> VfServer::Adopt(KeptVf& kept) {
  process_ = std::make_unique<Child>(Child::Adopt(kept.note.pid, std::move(kept.pidfd)));
  MakeLink(std::move(kept.link), MonotonicNs());  // far more than anybody can have asked
  TRY(spawner_.Adopt(*process_, std::move(kept.log)));
  if (kept.watch || !around_.confinement.watch) link_->RefuseFds();
  if (kept.watch) WatchSyscalls(std::move(kept.watch));
  return {};
}

Result<void> VfServer::Listen(uint32_t link_version) {
  TRY(link_->Send(vf_link::Adopt{.version = std::min(link_version, vf_link::kVersion)}));
  Watch(link_version);
  // The earlier vgpud may have ended between the disk and vgpud-vf: what is written down holds.
  if (link_version >= vf_link::kQuotasSince)
    SetQuotas(definition_.spec.memory(), [vf = definition_.spec.name](const ApiResult<void>& set) {
      if (!set) LOG(kError, "vf={}: its memory is not as it was written down: {}", vf, set.error().error);
    });
  return {};
}

void VfServer::Watch(uint32_t link_version) {
  link_version_ = link_version;
  link_->Watch();
}

void VfServer::SetQuotas(const VfMemory& quotas, Answer done) {
  const std::string& vf = definition_.spec.name;
  if (link_version_ < vf_link::kQuotasSince)
    return done(
        ApiFail(ErrorKind::kConflict,
                fmt::format("vf \"{}\": an earlier release of vgpud started its vgpud-vf, which keeps the memory "
                            "it has; make it anew with vgpuctl destroy and create",
                            vf)));
  if (question_)
    return done(ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\": its memory is changing already", vf)));
  const vf_link::Quotas message{
      .sequence = ++quotas_asked_, .vram_bytes = quotas.vram_bytes, .host_memory_bytes = quotas.host_memory_bytes};
  if (const auto sent = Send(message); !sent)
    return done(ApiFail(ErrorKind::kFailed,
                        fmt::format("vf \"{}\": vgpud-vf takes no messages: {}", vf, sent.error().context)));
  most_usage_ = Larger(most_usage_, quotas);
  question_ =
      Question{quotas, std::move(done),
               around_.loop.Timer([this] { to_vf_.on_lost("vgpud-vf does not answer what memory its programs use"); })};
  question_->too_long->Arm(kQuotasLimit);
}

Result<void> VfServer::OnQuotasSet(const Message& message) {
  const auto set = TRY(message.As<vf_link::QuotasSet>());
  if (!question_ || set.sequence != quotas_asked_ || set.ok > 1)
    return Fail(std::errc::bad_message, "unexpected QuotasSet");
  const VfMemory wanted = question_->quotas, used{set.vram_used, set.host_memory_used};
  const bool fits = Larger(used, wanted) == wanted;
  if (fits != (set.ok != 0) || Larger(used, most_usage_) != most_usage_)
    return Fail(std::errc::bad_message, fmt::format("{} and {} bytes in use, and {} new quotas", used.vram_bytes,
                                                    used.host_memory_bytes, fits ? "refuses" : "takes"));
  if (fits) quotas_ = wanted;
  most_usage_ = quotas_;
  const auto question = std::exchange(question_, std::nullopt);
  if (fits) return question->done({}), Result<void>{};
  const bool vram = used.vram_bytes > wanted.vram_bytes;
  question->done(ApiFail(ErrorKind::kConflict, WhyNotLess(definition_.spec.name, used, wanted),
                         vram ? "vram_bytes" : "host_memory_bytes"));
  return {};
}

Result<void> VfServer::GiveTo(KeptVf* kept) {
  kept->link = TRY(Dup(link_->fd()));
  kept->pidfd = TRY(Dup(process_->pidfd()));
  kept->log = std::move(log_);
  return {};
}

void VfServer::MakeLink(UniqueFd socket, uint64_t asked) {
  link_ = std::make_unique<ServerLink>(
      around_.loop, definition_.spec.name, std::move(socket), process_->pid(), around_.event_budgets,
      ServerLink::Events{
          .on_message = [this](vf_link::Kind kind, const Message& message) { return OnMessage(kind, message); },
          .on_lost = to_vf_.on_lost},
      asked);
  ended_ = around_.loop.OnReadable(process_->pidfd(), [this] { OnEnded(); });
}

Result<void> VfServer::OnMessage(vf_link::Kind kind, const Message& message) {
  static constexpr struct {
    vf_link::Kind kind;
    Result<void> (VfServer::*handle)(const Message&);
  } kHandlers[] = {
      {vf_link::Kind::kClient, &VfServer::OnClient},       {vf_link::Kind::kUsage, &VfServer::OnUsage},
      {vf_link::Kind::kEvents, &VfServer::OnEvents},       {vf_link::Kind::kWatched, &VfServer::OnWatched},
      {vf_link::Kind::kQuotasSet, &VfServer::OnQuotasSet},
  };
  for (const auto& handler : kHandlers)
    if (handler.kind == kind) return (this->*handler.handle)(message);
  return to_vf_.on_message(kind, message);
}

Result<void> VfServer::OnClient(const Message& message) {
  const uint32_t connected = TRY(message.As<vf_link::Client>()).connected;
  if (connected > 1) return Fail(std::errc::bad_message, fmt::format("{} clients", connected));
  present_.client_connected = connected != 0;
  return {};
}

// The figures are for display. Impossible ones show that vgpud-vf is no longer ours.
Result<void> VfServer::OnUsage(const Message& message) {
  const auto usage = TRY(message.As<vf_link::Usage>());
  const auto& [vram, host_memory] = most_usage_;
  if (usage.channels > kMaxExecutors || usage.vram_used > vram || usage.host_memory_used > host_memory)
    return Fail(std::errc::bad_message,
                fmt::format("{} bytes of {} and {} bytes of {} of the host in use by {} channels", usage.vram_used,
                            vram, usage.host_memory_used, host_memory, usage.channels));
  present_.vram_used = usage.vram_used;
  present_.host_memory_used = usage.host_memory_used;
  return {};
}

Result<void> VfServer::OnEvents(const Message& message) {
  const auto events = TRY(message.As<vf_link::Events>());
  bool fewer = events.throttled_ns < events_.throttled_ns;
  for (size_t e = 0; e < kGuardedEvents; ++e)
    fewer |= events.count[e] < events_.count[e] || events.throttled[e] < events_.throttled[e];
  if (fewer) return Fail(std::errc::bad_message, "counters that went back");
  events_ = events;
  return {};
}

Result<void> VfServer::OnWatched(const Message& message) {
  if (!around_.confinement.watch || syscalls_ != nullptr) return Fail(std::errc::bad_message, "unexpected Watched");
  if (message.fds.size() != 1 || !IsFilterWatch(message.fds[0].get()))
    return Fail(std::errc::bad_message, "Watched with something that is no watch");
  link_->RefuseFds();
  keeping_.KeepWatch(message.fds[0].get());
  WatchSyscalls(TRY(Dup(message.fds[0].get())));
  return {};
}

// Who tries a system call that is not on his list is not himself any more.
void VfServer::WatchSyscalls(UniqueFd watch) {
  syscalls_ = std::make_unique<SyscallWatch>(
      around_.loop, std::move(watch), [this](const SyscallWatch::Call& call) -> SyscallWatch::Verdict {
        if (process_ == nullptr) return {};
        LOG_LIMITED(limiter_, kError, "vf={} vgpud-vf pid={} tried {}, which it never has to: killed",
                    definition_.spec.name, process_->pid(), call.Name());
        process_->Kill(SIGKILL);
        return {};
      });
}

void VfServer::OnEnded() {
  const pid_t pid = process_->pid();
  const auto ending = process_->Reap();
  if (!ending) return;
  spawner_.Ended(pid);
  ended_.reset();
  process_.reset();
  last_report_ = link_->report();
  link_.reset();
  if (const auto question = std::exchange(question_, std::nullopt))
    question->done(ApiFail(ErrorKind::kFailed,
                           fmt::format("vf \"{}\": vgpud-vf ended while its memory changed", definition_.spec.name)));
  to_vf_.on_ended(ending->text, !present_.client_connected);
}

void VfServer::CountFault() {
  if (link_ != nullptr) link_->CountFault();
}

void VfServer::Kill() {
  if (process_ != nullptr) process_->Kill(SIGKILL);
}

void VfServer::Abandon() {
  if (process_ != nullptr) process_->Abandon();
}

ServerReport VfServer::report() const {
  ServerReport report = link_ != nullptr ? link_->report() : last_report_;
  report.log_lines_dropped = spawner_.log_lines_dropped();
  return report;
}

}  // namespace vgpud::daemon
