// SPDX-License-Identifier: Apache-2.0
#include "vfio/vfio_server.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "base/message.h"
#include "vfio/wire/version_text.h"

namespace vgpud::vfio {
namespace {

// A client that waits for each answer sends the next message a moment later. While it does so we look again for this
// long before we sleep: that saves the wake-up.
constexpr uint64_t kLookAgainNs = 30'000;
// Giving way took this long: others need this core (the client itself, perhaps), so sleeping is as quick and kinder.
// Tried again after so many messages.
constexpr uint64_t kOthersRanNs = 1'500;
constexpr uint32_t kRestMessages = 1024;
// Only a client whose last message came this soon after our last answer is worth it.
constexpr uint64_t kBusyGapNs = 100'000;
// When there are no descriptors left for a client, or too many wait to be closed.
constexpr std::chrono::milliseconds kAcceptAgain{100};
// After the last message, before a connection ends that is given up.
constexpr std::chrono::milliseconds kSilence{50};
// After so many reads in a row the other events of the loop get their turn.
constexpr int kReadsPerTurn = 256;
// And after so many commands of the guest's, which one read can bring: milliseconds.
constexpr uint64_t kCommandsPerTurn = 1024;

template <class T>
T CopyOf(std::span<const std::byte> body) {
  T value;
  std::memcpy(&value, body.data(), sizeof value);
  return value;
}

}  // namespace

struct VfioServer::Client {
  ForeignFd socket;
  FrameReader reader;
  Frame frame;
  bool version_done = false;
  bool broken = false;           // to be disconnected when its current message is done
  bool waiting_unmap = false;    // a DMA_UNMAP reply is owed
  uint64_t commands_before = 0;  // this turn of the loop
  bool throttled = false;        // until `go_on` fires
  uint64_t answered_ns = 0;
  bool busy = false;  // see kLookAgainNs
  uint32_t rest = 0;  // messages until `busy` may be set again
  std::vector<std::byte> unsent;
  EventLoop::WatchPtr readable;
  EventLoop::WatchPtr writable;  // paused while `unsent` is empty
  EventLoop::WatchPtr go_on;
};

// Room for one answer: the header first, then what handlers put behind it.
struct VfioServer::Reply {
  std::byte bytes[wire::kMaxBytes];
  size_t used = sizeof(wire::Header);
  bool later = false;  // the handler answers when it can

  template <class T>
  void Put(const T& value) {
    std::memcpy(bytes + used, &value, sizeof value);
    used += sizeof value;
  }
  std::span<std::byte> Room(size_t size) {
    used += size;
    return {bytes + used - size, size};
  }
};

struct VfioServer::CommandSpec {
  wire::Command command;
  const char* name;
  uint32_t min_body;
  uint32_t max_body;
  uint32_t max_fds;
  uint32_t least_argsz;  // 0: the struct has no such field
  Result<void> (VfioServer::*handle)(Frame&, Reply&);
};

const VfioServer::CommandSpec VfioServer::kCommands[] = {
    {wire::Command::kVersion, "VERSION", sizeof(wire::Version), sizeof(wire::Version) + kMaxVersionText + 1, 0, 0,
     &VfioServer::HandleVersion},
    {wire::Command::kDmaMap, "DMA_MAP", sizeof(wire::DmaMap), sizeof(wire::DmaMap), 1, sizeof(wire::DmaMap),
     &VfioServer::HandleDmaMap},
    {wire::Command::kDmaUnmap, "DMA_UNMAP", sizeof(wire::DmaUnmap), sizeof(wire::DmaUnmap), 0, sizeof(wire::DmaUnmap),
     &VfioServer::HandleDmaUnmap},
    {wire::Command::kDeviceGetInfo, "DEVICE_GET_INFO", sizeof(wire::DeviceInfo), 64, 0, sizeof(wire::DeviceInfo),
     &VfioServer::HandleDeviceInfo},
    {wire::Command::kDeviceGetRegionInfo, "DEVICE_GET_REGION_INFO", sizeof(wire::RegionInfo), 4096, 0,
     sizeof(wire::RegionInfo), &VfioServer::HandleRegionInfo},
    {wire::Command::kDeviceGetIrqInfo, "DEVICE_GET_IRQ_INFO", sizeof(wire::IrqInfo), 64, 0, sizeof(wire::IrqInfo),
     &VfioServer::HandleIrqInfo},
    {wire::Command::kDeviceSetIrqs, "DEVICE_SET_IRQS", sizeof(wire::SetIrqs), 4096, wire::kMaxFds,
     sizeof(wire::SetIrqs), &VfioServer::HandleSetIrqs},
    {wire::Command::kRegionRead, "REGION_READ", sizeof(wire::RegionAccess), sizeof(wire::RegionAccess), 0, 0,
     &VfioServer::HandleRegionRead},
    {wire::Command::kRegionWrite, "REGION_WRITE", sizeof(wire::RegionAccess),
     sizeof(wire::RegionAccess) + wire::kMaxTransfer, 0, 0, &VfioServer::HandleRegionWrite},
    {wire::Command::kDeviceReset, "DEVICE_RESET", 0, 0, 0, 0, &VfioServer::HandleReset},
};

const VfioServer::CommandSpec* VfioServer::Find(uint16_t command) {
  for (const CommandSpec& spec : kCommands)
    if (static_cast<uint16_t>(spec.command) == command) return &spec;
  return nullptr;
}

VfioServer::VfioServer(EventLoop& loop, UniqueFd listener, PciFunction& function, ChannelTable& channels,
                       const VfFigures& figures, EventGuard& guard, std::function<void(bool)> client_changed)
    : loop_(loop),
      listener_(std::move(listener)),
      function_(function),
      channels_(channels),
      figures_(figures),
      guard_(guard),
      client_changed_(std::move(client_changed)),
      accept_(loop.OnReadable(listener_.get(), [this] { OnConnect(); })),
      accept_again_(loop.Timer([this] {
        if (!retires_) accept_->Resume();
      })),
      silence_(loop.Timer([this] { Disconnect("the VF ends"); })),
      reply_(std::make_unique<Reply>()) {}

VfioServer::~VfioServer() = default;

void VfioServer::OnConnect() {
  ForeignFd socket;
  if (!ManyToClose()) socket = ForeignFd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket) {
    accept_->Pause();
    accept_again_->Arm(kAcceptAgain);
    return;
  }
  // What a client that is gone had sent before need not be served any more.
  if (client_ != nullptr && HasHungUp(client_->socket.get())) Disconnect("end of connection");
  if (client_ != nullptr) {
    LOG_LIMITED(limiter_, kWarning, "vf={} second vfio-user client refused: the VF is in use by another VM",
                figures_.name);
    return;
  }
  client_ = std::make_unique<Client>();
  client_->socket = std::move(socket);
  client_->readable = loop_.OnReadable(client_->socket.get(), [this] { OnReadable(); });
  client_->writable = loop_.OnWritable(client_->socket.get(), [this] { OnWritable(); });
  client_->writable->Pause();
  client_->go_on = loop_.Timer([this] {
    client_->throttled = false;
    BeginTurn();
    client_->readable->Resume();
    (void)ServeFrames();
  });
  LOG(kInfo, "vf={} vfio-user client connected", figures_.name);
  client_changed_(true);
}

void VfioServer::Retire() {
  retires_ = true;
  accept_->Pause();
  silence_->Arm(kSilence);
}

void VfioServer::Disconnect(const char* why) {
  if (client_ == nullptr) return;
  LOG(kInfo, "vf={} vfio-user client gone: {}", figures_.name, why);
  channels_.CancelDrop();
  client_->readable->Pause();
  client_->writable->Pause();
  client_->go_on->Pause();
  ::shutdown(client_->socket.get(), SHUT_RDWR);
  // To close a socket with something unread would reset the connection, on which QEMU 11.1 aborts.
  while (ReceiveMessage(client_->socket.get())) {
  }
  // May be inside a callback of its own watches.
  loop_.Post([dead = std::shared_ptr<Client>(std::move(client_))] {});
  function_.Disconnect();
  client_changed_(false);
}

void VfioServer::BeginTurn() { client_->commands_before = guard_.count(GuardedEvent::kCommand); }

void VfioServer::OnReadable() {
  BeginTurn();
  for (int reads = 0; reads < kReadsPerTurn; ++reads) {
    const FrameReader::Got got = Receive();
    if (got == FrameReader::Got::kEnd) return Disconnect("end of connection");
    if (retires_ && got != FrameReader::Got::kNothing) silence_->Arm(kSilence);
    if (got == FrameReader::Got::kNothing || !ServeFrames()) return;
  }
}

FrameReader::Got VfioServer::Receive() {
  for (;;) {
    const FrameReader::Got got = client_->reader.Fill(client_->socket.get());
    if (got != FrameReader::Got::kNothing || !client_->busy) return got;
    const uint64_t before = MonotonicNs();
    ::sched_yield();
    const uint64_t after = MonotonicNs();
    if (after - before > kOthersRanNs) client_->rest = kRestMessages;
    client_->busy = client_->rest == 0 && after < client_->answered_ns + kLookAgainNs;
  }
}

bool VfioServer::ServeFrames() {
  for (;;) {
    if (client_ == nullptr) return false;
    if (client_->broken) {
      Disconnect("broken message");
      return false;
    }
    if (client_->waiting_unmap || client_->throttled || !client_->unsent.empty() || Throttle()) {
      client_->readable->Pause();
      return false;
    }
    switch (client_->reader.Next(&client_->frame)) {
      case FrameReader::Cut::kPartial:
        return true;
      case FrameReader::Cut::kBroken:
        LOG_LIMITED(limiter_, kWarning, "vf={} message of {} bytes announced, {} to {} are possible: connection closed",
                    figures_.name, client_->frame.header.bytes, sizeof(wire::Header), wire::kMaxBytes);
        Disconnect("unusable message header");
        return false;
      case FrameReader::Cut::kFrame:
        Serve(client_->frame);
    }
  }
}

bool VfioServer::Throttle() {
  const bool turn_is_over = guard_.count(GuardedEvent::kCommand) - client_->commands_before >= kCommandsPerTurn;
  const Ns wait = guard_.Overdrawn(EventGuard::kInput) ? guard_.Wait(EventGuard::kInput, Now()) : Ns{0};
  if (wait == Ns{0} && !turn_is_over) return false;
  client_->throttled = true;
  client_->go_on->Arm(wait);
  return true;
}

void VfioServer::Serve(Frame& frame) {
  const wire::Header request = frame.header;
  if ((request.flags & wire::kTypeMask) == wire::kTypeReply) {
    LOG_LIMITED(limiter_, kWarning, "vf={} reply to command {} that was never sent: dropped", figures_.name,
                request.command);
    frame.fds.clear();
    return;
  }
  Reply& reply = *reply_;
  reply.used = sizeof(wire::Header);
  reply.later = false;
  guard_.Count(GuardedEvent::kMessage);
  const auto done = Dispatch(frame, reply);
  if (!done) guard_.Count(GuardedEvent::kBadMessage);
  if (client_ == nullptr) return;
  if (frame.fds_cut || !frame.fds.empty()) [[unlikely]] {
    frame.fds.clear();  // those that nobody has taken
    client_->broken |= !done && ManyToClose();
  }
  if (!done)
    LOG_LIMITED(limiter_, kDebug, "vf={} command={} errno={}: {}", figures_.name, request.command,
                static_cast<int>(done.error().code), done.error().context);
  if (reply.later || (request.flags & wire::kNoReply) != 0) return;
  if (!done) return SendError(request, done.error().code);
  const wire::Header head{request.id, request.command, static_cast<uint32_t>(reply.used), wire::kTypeReply, 0};
  std::memcpy(reply.bytes, &head, sizeof head);
  Send(reply.bytes, reply.used);
}

Result<void> VfioServer::Dispatch(Frame& frame, Reply& reply) {
  if ((frame.header.flags & wire::kTypeMask) != wire::kTypeCommand)
    return Fail(std::errc::invalid_argument, fmt::format("message flags {:#x}", frame.header.flags));
  const CommandSpec* spec = Find(frame.header.command);
  if (!client_->version_done && (spec == nullptr || spec->command != wire::Command::kVersion))
    return Fail(std::errc::invalid_argument, fmt::format("command {} before VERSION", frame.header.command));
  if (spec == nullptr)
    return Fail(std::errc::function_not_supported, fmt::format("unknown command {}", frame.header.command));
  if (frame.fds_cut || frame.fds.size() > spec->max_fds)
    return Fail(std::errc::invalid_argument, fmt::format("{}: at most {} fds", spec->name, spec->max_fds));
  if (frame.body.size() < spec->min_body || frame.body.size() > spec->max_body)
    return Fail(std::errc::invalid_argument, fmt::format("{}: {} bytes, {} to {} are possible", spec->name,
                                                         frame.body.size(), spec->min_body, spec->max_body));
  if (client_->version_done && spec->command == wire::Command::kVersion)
    return Fail(std::errc::invalid_argument, "VERSION: said already");
  if (spec->least_argsz != 0) {
    const auto argsz = CopyOf<uint32_t>(frame.body);  // the first field of every struct that has it
    if (argsz < spec->least_argsz)
      return Fail(std::errc::invalid_argument,
                  fmt::format("{}: argsz {}, {} is the least", spec->name, argsz, spec->least_argsz));
  }
  return (this->*spec->handle)(frame, reply);
}

void VfioServer::SendError(const wire::Header& request, std::errc code) {
  const wire::Header head{request.id, request.command, sizeof head, wire::kTypeReply | wire::kError,
                          static_cast<uint32_t>(code)};
  Send(reinterpret_cast<const std::byte*>(&head), sizeof head);
}

void VfioServer::Send(const std::byte* data, size_t bytes) {
  const uint64_t now = MonotonicNs();
  client_->busy = client_->rest == 0 && now - client_->answered_ns < kBusyGapNs;
  if (client_->rest != 0) --client_->rest;
  client_->answered_ns = now;
  size_t sent = 0;
  if (client_->unsent.empty()) {
    const ssize_t n = ::send(client_->socket.get(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == static_cast<ssize_t>(bytes)) return;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      client_->broken = true;
      return;
    }
    sent = n < 0 ? 0 : static_cast<size_t>(n);
    client_->writable->Resume();
  }
  client_->unsent.insert(client_->unsent.end(), data + sent, data + bytes);
}

void VfioServer::OnWritable() {
  std::vector<std::byte>& unsent = client_->unsent;
  const ssize_t n = ::send(client_->socket.get(), unsent.data(), unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN && errno != EINTR) return Disconnect("does not take answers");
  if (n > 0) unsent.erase(unsent.begin(), unsent.begin() + n);
  if (!unsent.empty()) return;
  client_->writable->Pause();
  if (client_->waiting_unmap) return;
  BeginTurn();
  client_->readable->Resume();
  (void)ServeFrames();
}

// vfio-user "VERSION": the client proposes, we answer with major 0 and a minor that is not above its own.
Result<void> VfioServer::HandleVersion(Frame& frame, Reply& reply) {
  const auto version = CopyOf<wire::Version>(frame.body);
  if (version.major != 0)
    return Fail(std::errc::protocol_not_supported,
                fmt::format("VERSION {}.{}, this server speaks 0.x", version.major, version.minor));
  const auto text = frame.body.subspan(sizeof version);
  std::string_view json{reinterpret_cast<const char*>(text.data()), text.size()};
  if (!json.empty() && (json.back() != '\0' || json.find('\0') != json.size() - 1))
    return Fail(std::errc::invalid_argument, "VERSION: the text does not end with its only NUL");
  if (!json.empty()) json.remove_suffix(1);
  const ClientCapabilities said = TRY(ParseVersionText(json));
  LOG(kDebug, "vf={} client max_data_xfer_size={} max_msg_fds={}", figures_.name, said.max_data_xfer_size,
      said.max_msg_fds);
  client_->version_done = true;
  reply.Put(wire::Version{});
  const std::string_view answer = VersionText();
  std::memcpy(reply.Room(answer.size()).data(), answer.data(), answer.size());
  reply.Put('\0');
  return {};
}

// vfio-user "DMA_MAP". Without an fd the range is known but cannot be reached: firmware, other devices, private RAM.
Result<void> VfioServer::HandleDmaMap(Frame& frame, Reply&) {
  const auto map = CopyOf<wire::DmaMap>(frame.body);
  if ((map.flags & ~(wire::kDmaRead | wire::kDmaWrite)) != 0)
    return Fail(std::errc::invalid_argument, fmt::format("DMA_MAP flags {:#x}", map.flags));
  ForeignFd none;
  return function_.dma.Map({Iova{map.iova}, map.bytes},
                           {(map.flags & wire::kDmaRead) != 0, (map.flags & wire::kDmaWrite) != 0},
                           frame.fds.empty() ? none : frame.fds[0], map.offset);
}

// vfio-user "DMA_UNMAP". The answer means that no executor can touch the range any more.
Result<void> VfioServer::HandleDmaUnmap(Frame& frame, Reply& reply) {
  const auto unmap = CopyOf<wire::DmaUnmap>(frame.body);
  const bool all = unmap.flags == wire::kUnmapAll;
  if (!all && unmap.flags != 0)
    return Fail(std::errc::invalid_argument, fmt::format("DMA_UNMAP flags {:#x}", unmap.flags));
  if (all && (unmap.iova != 0 || unmap.bytes != 0))
    return Fail(std::errc::invalid_argument, "DMA_UNMAP of everything with an address or a size");
  const IovaRange range{Iova{unmap.iova}, all ? ~uint64_t{0} : unmap.bytes};
  if (!all) TRY(function_.dma.CheckUnmap(range));
  const wire::Header request = frame.header;
  reply.later = true;
  if (channels_.Drop(range, [this, request, unmap](Result<void> dropped) {
        client_->waiting_unmap = false;
        FinishUnmap(request, unmap, std::move(dropped));
        if (!client_->unsent.empty()) return;
        client_->readable->Resume();
        (void)ServeFrames();
      })) {
    FinishUnmap(request, unmap, {});
  } else {
    client_->waiting_unmap = true;
  }
  return {};
}

void VfioServer::FinishUnmap(const wire::Header& request, const wire::DmaUnmap& unmap, Result<void> dropped) {
  if (unmap.flags == wire::kUnmapAll)
    function_.dma.Clear();
  else
    function_.dma.Unmap({Iova{unmap.iova}, unmap.bytes});
  if (!dropped) LOG(kError, "vf={} {}", figures_.name, dropped.error().context);
  if ((request.flags & wire::kNoReply) != 0) return;
  if (!dropped) return SendError(request, dropped.error().code);
  struct {
    wire::Header head;
    wire::DmaUnmap unmap;
  } reply{{request.id, request.command, sizeof reply, wire::kTypeReply, 0}, unmap};
  Send(reinterpret_cast<const std::byte*>(&reply), sizeof reply);
}

Result<void> VfioServer::HandleDeviceInfo(Frame&, Reply& reply) {
  reply.Put(
      wire::DeviceInfo{sizeof(wire::DeviceInfo), wire::kDeviceReset | wire::kDevicePci, wire::kRegions, wire::kIrqs});
  return {};
}

Result<void> VfioServer::HandleRegionInfo(Frame& frame, Reply& reply) {
  const auto asked = CopyOf<wire::RegionInfo>(frame.body);
  reply.Put(TRY(PciFunction::RegionInfo(asked.index)));
  return {};
}

Result<void> VfioServer::HandleIrqInfo(Frame& frame, Reply& reply) {
  const auto asked = CopyOf<wire::IrqInfo>(frame.body);
  reply.Put(TRY(IrqTable::Info(asked.index)));
  return {};
}

Result<void> VfioServer::HandleSetIrqs(Frame& frame, Reply&) {
  const auto set = CopyOf<wire::SetIrqs>(frame.body);
  return function_.irqs.Set(set, frame.body.subspan(sizeof set), frame.fds);
}

Result<void> VfioServer::HandleRegionRead(Frame& frame, Reply& reply) {
  const auto access = CopyOf<wire::RegionAccess>(frame.body);
  if (access.bytes > wire::kMaxTransfer)
    return Fail(std::errc::invalid_argument, fmt::format("REGION_READ of {} bytes", access.bytes));
  reply.Put(access);
  return function_.Read(access.region, access.offset, reply.Room(access.bytes));
}

// Posted writes (NO_REPLY) come here too; a doorbell is one.
Result<void> VfioServer::HandleRegionWrite(Frame& frame, Reply& reply) {
  const auto access = CopyOf<wire::RegionAccess>(frame.body);
  const auto data = frame.body.subspan(sizeof access);
  if (data.size() != access.bytes)
    return Fail(std::errc::invalid_argument,
                fmt::format("REGION_WRITE of {} bytes with {} bytes of data", access.bytes, data.size()));
  TRY(function_.Write(access.region, access.offset, data));
  reply.Put(access);
  return {};
}

Result<void> VfioServer::HandleReset(Frame&, Reply&) {
  LOG_LIMITED(limiter_, kInfo, "vf={} reset by the client", figures_.name);
  function_.Reset();
  return {};
}

}  // namespace vgpud::vfio
