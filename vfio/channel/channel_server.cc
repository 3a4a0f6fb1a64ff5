// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/channel_server.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/message.h"
#include "base/signal_socket.h"
#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"
#include "vfio/channel/vf_status.h"
#include "vfio/memory/client_file.h"

namespace vgpud::vfio {
namespace {

constexpr std::chrono::milliseconds kHold{100};
// What an executor maps at most (gpu/exec/memory/area.cc).
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxBufferBytes = uint64_t{64} << 30;

// Each buffer costs a descriptor of this process; half of them stay for the VM, channels and executors.
size_t MostBufferFiles() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : 0;
}

}  // namespace

class ChannelServer::Connection : public ChannelOwner {
 public:
  Connection(ChannelServer& server, uint64_t id, ForeignFd socket, std::shared_ptr<const Peer> peer)
      : server_(server),
        id_(id),
        peer_(std::move(peer)),
        socket_(std::move(socket)),
        watch_(server.loop_.OnReadable(socket_.get(), [this] { OnRequest(); })),
        idle_(server.loop_.Timer([this] { OnIdle(); })) {
    idle_->Arm(kOpenWithin);
  }
  ~Connection() override { server_.channels_.Abandon(this); }

  void ChannelState(uint32_t, uint32_t state) override {
    // Lost: the client has been told through the channel header and its call socket.
    if (state == VGPU_CHANNEL_FREE) End("the VF was reset");
  }
  void Pause() { watch_->Pause(); }
  void Resume() {
    if (!ended_) watch_->Resume();
  }
  // What it took can be had again when the client hears of it.
  void BufferGone(uint32_t, uint32_t buffer) override {
    server_.channels_.files().work().Do(
        peer_, [] {},
        [&server = server_, id = id_, buffer] {
          if (const auto found = server.connections_.find(id); found != server.connections_.end())
            found->second->Answer(vgpu_sock_reply{VGPU_SOCK_BUFFER_FREE, 0, buffer, 0, {}}, {});
        });
  }

 private:
  struct Operation {
    uint32_t op;
    enum class When { kBeforeOpen, kAfterOpen, kAnyTime } when;
    size_t fds;
    Result<void> (Connection::*run)(const vgpu_sock_request&, Message&);
  };
  static const Operation kOperations[5];

  const Operation* Find(uint32_t op) const {
    const auto found =
        std::find_if(std::begin(kOperations), std::end(kOperations), [op](const Operation& o) { return o.op == op; });
    if (found == std::end(kOperations) || (found->fds != 0 && !server_.figures_.client_memory)) return nullptr;
    return found;
  }

  void OnRequest() {
    auto message = ReceiveMessage(socket_.get());
    if (!message) {
      if (message.error().code == std::errc::resource_unavailable_try_again) return;
      if (ManyToClose()) server_.Hold(kHold);
      return End("end of connection");
    }
    const auto request = message->As<vgpu_sock_request>();
    const Operation* const operation = request ? Find(request->op) : nullptr;
    const size_t fds = operation != nullptr ? operation->fds : 0;
    if (!request || message->bytes.size() != sizeof *request || message->fds.size() != fds) {
      if (ManyToClose()) server_.Hold(kHold);
      return End("not a request of the channel protocol");
    }
    const auto done = Run(operation, *request, *message);
    server_.Count();
    if (done) return;
    // What came with it is closed now, which a client's own file system can make last.
    if (fds != 0 && ManyToClose()) {
      server_.Hold(kHold);
      return End("too many of its descriptors are being closed");
    }
    LOG_LIMITED(limiter_, kWarning, "vf={} channel.sock pid={} op={} errno={}: {}", server_.figures_.name, pid_,
                request->op, static_cast<int>(done.error().code), done.error().context);
    Answer(vgpu_sock_reply{request->op, -static_cast<int32_t>(done.error().code), request->buffer, 0, {}}, {});
  }

  // What it has asked may wait for its budget.
  void OnIdle() {
    if (server_.held_) return idle_->Arm(kOpenWithin);
    if (area_ == nullptr) End("opened no channel in time");
  }

  [[nodiscard]] Result<void> Run(const Operation* operation, const vgpu_sock_request& request, Message& message) {
    if (operation == nullptr)
      return Fail(std::errc::function_not_supported, fmt::format("unknown request {}", request.op));
    if (request.mbz != 0 || (request.offset != 0 && operation->fds == 0))
      return Fail(std::errc::invalid_argument, "a reserved field is not zero");
    const auto now = area_ == nullptr ? Operation::When::kBeforeOpen : Operation::When::kAfterOpen;
    if (operation->when != now && operation->when != Operation::When::kAnyTime)
      return Fail(std::errc::invalid_argument, "OPEN comes first, and once");
    return (this->*operation->run)(request, message);
  }

  [[nodiscard]] Result<void> Open(const vgpu_sock_request& request, Message& message) {
    if (message.sender_gone) return Fail(std::errc::no_such_process, "the process that asked for a channel has ended");
    if (request.bytes != VGPU_ABI_VERSION)
      return Fail(std::errc::protocol_not_supported,
                  fmt::format("client speaks ABI version {}, this host {}", request.bytes, VGPU_ABI_VERSION));
    channel_ = TRY(server_.channels_.FindFree());
    pid_ = request.client_pid;
    const auto area = std::make_shared<const UniqueFd>(TRY(MakeSealedMemfd("vgpu-channel", VGPU_CHANNEL_BYTES)));
    vgpu_channel_header header{};
    header.magic = VGPU_MAGIC;
    header.abi_version = VGPU_ABI_VERSION;
    header.payload_bytes = VGPU_CHANNEL_BYTES - VGPU_CHANNEL_PAYLOAD_OFFSET;
    header.unused_pid = request.client_pid;
    if (::pwrite(area->get(), &header, sizeof header, 0) != sizeof header) return FailErrno("channel header");
    ChannelRequest channel;
    channel.owner = this;
    channel.guard = &server_.guard_;
    channel.area = {{{area, 0, VGPU_CHANNEL_BYTES, true, {}}}, VGPU_CHANNEL_BYTES};
    channel.client_pid = request.client_pid;
    channel.client = peer_;
    SignalSocket kick = TRY(MakeSignalSocket()), call = TRY(MakeSignalSocket());
    channel.kick_ends = std::make_shared<const UniqueFd>(std::move(kick.listens));
    channel.call = std::make_shared<const UniqueFd>(std::move(call.rings));
    const int fds[] = {area->get(), kick.rings.get(), call.listens.get()};
    TRY(server_.channels_.Open(channel_, std::move(channel)));
    area_ = area;
    idle_->Pause();
    EndWith(std::move(message.sender));
    vgpu_sock_reply reply{VGPU_SOCK_OPEN, 0, 0, 0, {}};
    reply.info.abi_version = VGPU_ABI_VERSION;
    reply.info.channel = channel_;
    reply.info.channel_bytes = VGPU_CHANNEL_BYTES;
    reply.info.vram_bytes = server_.figures_.vram_bytes;
    reply.info.features = VGPU_FEATURE_BUFFERS | (VGPU_FEATURES_ALL & ~VGPU_FEATURES_TRANSPORT);
    if (server_.figures_.client_memory) reply.info.features |= VGPU_FEATURE_CLIENT_MEMORY;
    reply.info.slice_us = server_.figures_.slice_us;
    reply.info.weight = server_.figures_.weight;
    std::copy(server_.figures_.uuid.begin(), server_.figures_.uuid.end(), reply.info.uuid);
    server_.figures_.name.copy(reply.info.name, sizeof reply.info.name - 1);
    Answer(reply, fds);
    return {};
  }

  // The channel is that process's. Others may have the connection too, as a child that it has forked: they don't keep
  // what it had.
  void EndWith(UniqueFd process) {
    if (!process) return;  // this kernel does not say
    process_ = std::move(process);
    process_ends_ = server_.loop_.OnReadable(process_.get(), [this] { End("its process has ended"); });
  }

  [[nodiscard]] Result<void> CheckBuffer(const vgpu_sock_request& request) const {
    if (request.bytes == 0 || request.bytes % kPage != 0 || request.bytes > kMaxBufferBytes)
      return Fail(
          std::errc::invalid_argument,
          fmt::format("buffer of {} bytes: whole pages are needed, {} bytes at most", request.bytes, kMaxBufferBytes));
    if (*server_.buffer_files_ >= server_.max_buffer_files_)
      return Fail(
          std::errc::no_space_on_device,
          fmt::format("the clients of this VF have {} pinned buffers, that is the limit", *server_.buffer_files_));
    return {};
  }

  // The number of the buffer that `memory` is now.
  [[nodiscard]] Result<uint32_t> AddBuffer(const SharedFd& memory, const vgpu_sock_request& request) {
    const uint32_t buffer = next_buffer_;
    TRY(server_.channels_.AddBuffer(channel_, this, buffer,
                                    {{{memory, request.offset, request.bytes, true, {}}}, request.bytes}));
    next_buffer_ = buffer == 0x7fffffff ? 1 : buffer + 1;
    return buffer;
  }

  [[nodiscard]] Result<void> BufferAlloc(const vgpu_sock_request& request, Message&) {
    TRY(CheckBuffer(request));
    UniqueFd file = TRY(MakeSealedMemfd("vgpu-buffer", request.bytes));
    const SharedFd memory =
        server_.CountBufferFile(TRY(server_.channels_.files().Charge(std::move(file), request.bytes, peer_)));
    const uint32_t buffer = TRY(AddBuffer(memory, request));
    const int fds[] = {memory->get()};
    Answer(vgpu_sock_reply{VGPU_SOCK_BUFFER_ALLOC, 0, buffer, 0, {}}, fds);
    return {};
  }

  [[nodiscard]] Result<void> BufferImport(const vgpu_sock_request& request, Message& message) {
    std::vector<ForeignFd>& fds = message.fds;
    TRY(CheckBuffer(request));
    // Of its last page the file may have a part only: as memory there is all of it.
    TRY(CheckClientFile(fds[0], request.offset, request.bytes - (kPage - 1), true, "BUFFER_IMPORT"));
    const uint64_t page = PageOf(fds[0].get());
    if ((request.offset | request.bytes) % page != 0)
      return Fail(std::errc::invalid_argument,
                  fmt::format("{:#x} bytes of memory from {:#x} on are no whole pages, which have {:#x} bytes there",
                              request.bytes, request.offset, page));
    const SharedFd memory =
        server_.CountBufferFile(TRY(server_.channels_.files().ChargeClients(std::move(fds[0]), request.bytes)));
    const uint32_t buffer = TRY(AddBuffer(memory, request));
    Answer(vgpu_sock_reply{VGPU_SOCK_BUFFER_IMPORT, 0, buffer, 0, {}}, {});
    return {};
  }

  // Answered by BufferGone when the executor has let go.
  [[nodiscard]] Result<void> BufferFree(const vgpu_sock_request& request, Message&) {
    return server_.channels_.RemoveBuffer(channel_, this, request.buffer);
  }

  [[nodiscard]] Result<void> Status(const vgpu_sock_request& request, Message&) {
    if (request.bytes != 0 || request.buffer != 0)
      return Fail(std::errc::invalid_argument, "STATUS takes no bytes and no buffer");
    Answer(vgpu_sock_status{VGPU_SOCK_STATUS, 0, 0, StatusOf(server_.figures_, server_.channels_, Now())}, {});
    return {};
  }

  template <class Reply>
  void Answer(const Reply& reply, std::span<const int> fds) {
    if (const auto sent = SendStruct(socket_.get(), reply, fds); !sent) End("does not take its answers");
  }

  void End(const char* why) {
    if (std::exchange(ended_, true)) return;
    LOG(kDebug, "vf={} channel.sock pid={} gone: {}", server_.figures_.name, pid_, why);
    watch_->Pause();
    if (process_ends_ != nullptr) process_ends_->Pause();
    ::shutdown(socket_.get(), SHUT_RDWR);
    server_.channels_.Abandon(this);
    server_.Remove(id_);
  }

  ChannelServer& server_;
  const uint64_t id_;
  const std::shared_ptr<const Peer> peer_;
  ForeignFd socket_;
  EventLoop::WatchPtr watch_;
  EventLoop::WatchPtr idle_;
  UniqueFd process_;  // pidfd of the one that opened the channel
  EventLoop::WatchPtr process_ends_;
  bool ended_ = false;
  std::shared_ptr<const UniqueFd> area_;  // set once the channel is open
  uint32_t channel_ = 0;
  uint32_t pid_ = 0;
  uint32_t next_buffer_ = 1;
  LogLimiter limiter_;
};

const ChannelServer::Connection::Operation ChannelServer::Connection::kOperations[5] = {
    {VGPU_SOCK_OPEN, Operation::When::kBeforeOpen, 0, &Connection::Open},
    {VGPU_SOCK_BUFFER_ALLOC, Operation::When::kAfterOpen, 0, &Connection::BufferAlloc},
    {VGPU_SOCK_BUFFER_IMPORT, Operation::When::kAfterOpen, 1, &Connection::BufferImport},
    {VGPU_SOCK_BUFFER_FREE, Operation::When::kAfterOpen, 0, &Connection::BufferFree},
    {VGPU_SOCK_STATUS, Operation::When::kAnyTime, 0, &Connection::Status},
};

ChannelServer::ChannelServer(EventLoop& loop, UniqueFd listener, ChannelTable& channels, const VfFigures& figures,
                             EventGuard& guard)
    : loop_(loop),
      listener_(std::move(listener)),
      channels_(channels),
      figures_(figures),
      guard_(guard),
      max_buffer_files_(MostBufferFiles()),
      accept_(loop.OnReadable(listener_.get(), [this] { OnConnect(); })),
      go_on_(loop.Timer([this] {
        held_ = false;
        accept_->Resume();
        for (const auto& [id, connection] : connections_) connection->Resume();
      })) {
  if (!AskForSenders(listener_.get()))
    LOG(kInfo, "vf={} this kernel does not say who sends: a channel lasts as long as any process has its connection",
        figures_.name);
}

ChannelServer::~ChannelServer() = default;

void ChannelServer::Count() {
  guard_.Count(GuardedEvent::kCommand);
  if (!guard_.Overdrawn(EventGuard::kInput)) return;
  const Ns wait = guard_.Wait(EventGuard::kInput, Now());
  if (wait != Ns{0}) Hold(wait);
}

void ChannelServer::Hold(Ns time) {
  held_ = true;
  accept_->Pause();
  for (const auto& [id, connection] : connections_) connection->Pause();
  go_on_->Arm(time);
}

void ChannelServer::OnConnect() {
  if (ManyToClose()) return Hold(kHold);
  ForeignFd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket) return Hold(kHold);  // no descriptors left, perhaps
  const auto peer = std::make_shared<const Peer>(PeerOf(socket.get()));
  if (const char* full = WhyRefused(Peers(), *peer); full != nullptr) {
    LOG_LIMITED(limiter_, kWarning, "vf={} channel.sock: pid={} uid={} refused: {}", figures_.name, peer->pid,
                peer->uid, full);
  } else {
    const uint64_t id = next_id_++;
    peers_.push_back(peer);
    connections_.emplace(id, std::make_unique<Connection>(*this, id, std::move(socket), peer));
  }
  Count();
}

std::vector<Peer> ChannelServer::Peers() {
  std::vector<Peer> peers;
  std::vector<std::weak_ptr<const Peer>> alive;
  for (const auto& known : std::exchange(peers_, {}))
    if (const auto peer = known.lock()) {
      peers.push_back(*peer);
      alive.push_back(known);
    }
  peers_ = std::move(alive);
  return peers;
}

SharedFd ChannelServer::CountBufferFile(SharedFd file) {
  ++*buffer_files_;
  return {file.get(), [count = buffer_files_, file](const UniqueFd*) { --*count; }};
}

void ChannelServer::Remove(uint64_t id) {
  // Not inside the connection's own callback.
  loop_.Post([this, id] { connections_.erase(id); });
}

}  // namespace vgpud::vfio
