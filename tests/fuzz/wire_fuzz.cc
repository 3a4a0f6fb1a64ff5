// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: what a VM, clients of the channel socket and executors send to vgpud-vf, in any order. The input is
// a program of steps (kSteps); each takes its arguments from the bytes that follow.
#include <event2/event.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/exec_link.h"
#include "base/mapping.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"
#include "vfio/channel/channel_server.h"
#include "vfio/vfio_server.h"
#include "vfio/wire/version_text.h"

namespace vgpud::vfio {
namespace {

constexpr uint64_t kRamBytes = 4 << 20;
constexpr size_t kMostSteps = 64;

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : left_(data, size) {}
  bool empty() const { return left_.empty(); }
  template <class T>
  T Take() {
    T value{};
    std::memcpy(&value, left_.data(), std::min(sizeof value, left_.size()));
    left_ = left_.subspan(std::min(sizeof value, left_.size()));
    return value;
  }
  std::span<const std::byte> Some() {
    const size_t size = std::min<size_t>(Take<uint16_t>() % 5000, left_.size());
    const auto some = left_.first(size);
    left_ = left_.subspan(size);
    return std::as_bytes(some);
  }

 private:
  std::span<const uint8_t> left_;
};

// A listening socket without a path.
UniqueFd Listen(int type) {
  UniqueFd socket{::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const sa_family_t family = AF_UNIX;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&family), sizeof family) != 0) std::abort();
  if (::listen(socket.get(), 64) != 0) std::abort();
  return socket;
}
UniqueFd Connect(int listener, int type) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  UniqueFd socket{::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) socket.Reset();
  return socket;
}

// A vgpud-vf without processes: its sockets have both ends here.
class Bed {
 public:
  Bed() {
    figures_.name = "fuzz";
    figures_.vram_bytes = 1 << 30;
    ledgers_.vram.SetQuota(figures_.vram_bytes);
    ledgers_.host.SetQuota(figures_.vram_bytes);
    header_.magic = VGPU_MAGIC;
    header_.abi_version = VGPU_ABI_VERSION;
    (void)!::pwrite(ram_.get(), &header_, sizeof header_, 1 << 20);
  }

  void Play(Bytes bytes) {
    for (size_t step = 0; step < kMostSteps && !bytes.empty(); ++step) {
      (this->*kSteps[bytes.Take<uint8_t>() % std::size(kSteps)])(bytes);
      Pump();
      if (ledgers_.vram.used() > ledgers_.vram.quota() || ledgers_.host.used() > ledgers_.host.quota()) std::abort();
    }
    vm_.Reset();
    clients_ = {};
    executors_.clear();
    for (int i = 0; i < 4; ++i) Pump();
    if (vfio_.connected() || channels_.any_executor() || channels_.open_channels() != 0 || ledgers_.vram.used() != 0)
      std::abort();
  }

 private:
  using Step = void (Bed::*)(Bytes&);
  static const std::array<Step, 15> kSteps;

  struct Executor {
    UniqueFd socket;
    UniqueFd life;  // what stands for its pidfd becomes readable when this is closed
  };

  void Pump() {
    for (int i = 0; i < 4; ++i) event_base_loop(loop_.base(), EVLOOP_NONBLOCK);
    std::byte answers[4096];
    while (vm_ && ::recv(vm_.get(), answers, sizeof answers, MSG_DONTWAIT) > 0) continue;
    for (UniqueFd& client : clients_)
      while (client && ReceiveMessage(client.get())) continue;
    for (Executor& executor : executors_)
      while (executor.socket && ReceiveMessage(executor.socket.get())) continue;
    StartExecutors();
  }
  void StartExecutors() {
    for (vf_link::Executor need : std::exchange(wanted_, {})) {
      if (need.kind != vf_link::Kind::kNeedExecutor) continue;
      SocketPair pair = *MakeSeqpacketPair();
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
      need.kind = vf_link::Kind::kExecutor;
      executors_.push_back({std::move(pair.a), UniqueFd{ends[1]}});
      channels_.ExecutorStarted(need, std::move(pair.b), UniqueFd{ends[0]});
    }
  }

  void Send(const UniqueFd& socket, std::span<const std::byte> head, std::span<const std::byte> body, uint8_t fds) {
    if (!socket) return;
    const int kinds[] = {ram_.get(), msi_.get(), STDIN_FILENO, socket.get()};
    std::array<int, kMaxMessageFds> sent;
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = kinds[(fds >> 6) ^ (i & 1)];
    (void)SendMessage(socket.get(), head, std::span{sent}.first((fds & 63) % (kMaxMessageFds + 1)), body);
  }
  void Vfio(wire::Command command, std::span<const std::byte> body, uint8_t fds, uint32_t flags = 0) {
    const wire::Header head{7, static_cast<uint16_t>(command), static_cast<uint32_t>(sizeof head + body.size()), flags,
                            0};
    Send(vm_, std::as_bytes(std::span{&head, 1}), body, fds);
  }
  template <class T>
  void Vfio(wire::Command command, const T& body, uint8_t fds = 0) {
    Vfio(command, std::as_bytes(std::span{&body, 1}), fds);
  }

  // ---- steps: the VM ----
  void ConnectVm(Bytes& bytes) {
    vm_.Reset();
    Pump();
    vm_ = Connect(vfio_fd_, SOCK_STREAM);
    if (bytes.Take<uint8_t>() % 4 != 0) Vfio(wire::Command::kVersion, wire::Version{});
  }
  void VersionText(Bytes& bytes) {
    const auto text = bytes.Some();
    std::vector<std::byte> body(sizeof(wire::Version));
    body.insert(body.end(), text.begin(), text.end());
    body.push_back(std::byte{0});
    const auto parsed = ParseVersionText({reinterpret_cast<const char*>(text.data()), text.size()});
    if (!parsed && parsed.error().context.empty()) std::abort();
    Vfio(wire::Command::kVersion, body, 0);
  }
  void AnyMessage(Bytes& bytes) {
    const auto command = static_cast<wire::Command>(bytes.Take<uint8_t>() % 20);
    const auto flags = bytes.Take<uint8_t>();
    const auto fds = bytes.Take<uint8_t>();
    Vfio(command, bytes.Some(), fds, flags);
  }
  void AnyBytes(Bytes& bytes) {
    const auto fds = bytes.Take<uint8_t>();
    Send(vm_, bytes.Some(), {}, fds);
  }
  void MapRam(Bytes& bytes) {
    const auto fds = bytes.Take<uint8_t>();
    if (fds % 2 == 0) return Vfio(wire::Command::kDmaMap, wire::DmaMap{32, 3, 0, 0, kRamBytes}, 1);
    Vfio(wire::Command::kDmaMap, bytes.Take<wire::DmaMap>(), fds);
  }
  void Unmap(Bytes& bytes) {
    const auto all = bytes.Take<uint8_t>();
    if (all % 4 == 0) return Vfio(wire::Command::kDmaUnmap, wire::DmaUnmap{24, 0, 0, kRamBytes});
    if (all % 4 == 1) return Vfio(wire::Command::kDmaUnmap, wire::DmaUnmap{24, wire::kUnmapAll, 0, 0});
    Vfio(wire::Command::kDmaUnmap, bytes.Take<wire::DmaUnmap>());
  }
  void SetIrqs(Bytes& bytes) {
    const auto fds = bytes.Take<uint8_t>();
    if (fds % 2 == 0) return Vfio(wire::Command::kDeviceSetIrqs, wire::SetIrqs{20, 0x24, 1, 0, 1}, 64 + 1);
    Vfio(wire::Command::kDeviceSetIrqs, bytes.Take<wire::SetIrqs>(), fds);
  }
  void WriteRegister(uint64_t offset, uint64_t value) {
    const struct {
      wire::RegionAccess access;
      uint64_t value;
    } write{{offset, wire::kBar0, 8}, value};
    Vfio(wire::Command::kRegionWrite, write);
  }
  void SetBusMaster() {
    const struct {
      wire::RegionAccess access;
      uint16_t command;
    } write{{4, wire::kConfig, 2}, 0x0006};
    std::array<std::byte, sizeof write.access + sizeof write.command> body;
    std::memcpy(body.data(), &write.access, sizeof write.access);
    std::memcpy(body.data() + sizeof write.access, &write.command, sizeof write.command);
    Vfio(wire::Command::kRegionWrite, body);
  }
  void Register(Bytes& bytes) {
    const auto offset = bytes.Take<uint16_t>();
    WriteRegister(offset, bytes.Take<uint64_t>());
  }
  void Control(Bytes& bytes) {
    vgpu_ctrl_cmd command{};
    command.op = bytes.Take<uint8_t>() % 6;
    command.channel = bytes.Take<uint8_t>() % 4;
    command.buffer = bytes.Take<uint8_t>() % 4;
    command.seg_count = bytes.Take<uint8_t>() % 4;
    command.seg_list = command.seg_count != 0 ? 0x2000 : 0;
    vgpu_segment segments[4] = {{1 << 20, 1 << 20}};
    const auto how = bytes.Take<uint8_t>();
    command.flags = how / 2 % 4;
    command.client_pid = how / 8 % 2;
    if (how % 2 != 0)
      for (vgpu_segment& segment : segments) segment = bytes.Take<vgpu_segment>();
    (void)!::pwrite(ram_.get(), &command, sizeof command, 0x1000);
    (void)!::pwrite(ram_.get(), segments, sizeof segments, 0x2000);
    SetBusMaster();
    WriteRegister(VGPU_REG_CTRL_ADDR_LO, 0x1000);
    Pump();
    WriteRegister(VGPU_REG_CTRL_KICK, 1);
  }
  // ---- steps: clients of the channel socket ----
  UniqueFd& Client(Bytes& bytes) { return clients_[bytes.Take<uint8_t>() % clients_.size()]; }
  void ConnectClient(Bytes& bytes) { Client(bytes) = Connect(channel_fd_, SOCK_SEQPACKET); }
  void Request(Bytes& bytes) {
    const UniqueFd& client = Client(bytes);
    vgpu_sock_request request{};
    request.op = bytes.Take<uint8_t>() % 5;
    request.buffer = bytes.Take<uint8_t>();
    const auto bytes_wanted = bytes.Take<uint32_t>();
    request.bytes = request.op == VGPU_SOCK_OPEN ? bytes_wanted % 4 : (bytes_wanted % 3) * 4096 + bytes_wanted % 2;
    Send(client, std::as_bytes(std::span{&request, 1}), {}, 0);
  }
  void AnyRequest(Bytes& bytes) {
    const UniqueFd& client = Client(bytes);
    const auto fds = bytes.Take<uint8_t>();
    Send(client, bytes.Some(), {}, fds);
  }
  // ---- steps: executors ----
  void ExecutorSays(Bytes& bytes) {
    if (executors_.empty()) return;
    Executor& executor = executors_[bytes.Take<uint8_t>() % executors_.size()];
    const auto what = bytes.Take<uint8_t>();
    if (what % 4 == 0) {
      const exec_link::Vram vram{exec_link::Kind::kVramRequest, 0, bytes.Take<int64_t>(), 0};
      Send(executor.socket, std::as_bytes(std::span{&vram, 1}), {}, 0);
    } else if (what % 4 == 1) {
      const exec_link::Area area{exec_link::Kind::kUnmapped, bytes.Take<uint8_t>() % 4u};
      Send(executor.socket, std::as_bytes(std::span{&area, 1}), {}, 0);
    } else if (what % 4 == 2) {
      const auto fds = bytes.Take<uint8_t>();
      Send(executor.socket, bytes.Some(), {}, fds);
    } else {
      executor = {};
    }
  }
  void ExecutorFails(Bytes& bytes) {
    vf_link::Executor failed = bytes.Take<vf_link::Executor>();
    failed.channel %= VGPU_MAX_CHANNELS + 1;
    channels_.ExecutorFailed(failed);
  }
  void ResetByVgpud(Bytes&) {
    function_.Reset();
    channels_.CloseAll();
  }

  EventLoop loop_;
  VfFigures figures_;
  MemoryLedgers ledgers_;
  vgpu_channel_header header_{};
  EventGuard guard_{EventBudgets{}, TimePoint{}, [] {}};  // without limits: only order matters here
  UniqueFd ram_ = *MakeSealedMemfd("ram", kRamBytes);
  UniqueFd msi_ = *MakeEventFd();
  SliceMemory slice_memory_ = *MakeSliceMemory("fuzz");
  SliceView slices_ = *MapSlices(slice_memory_.grant_fd.get(), slice_memory_.slots_fd.get());
  std::vector<vf_link::Executor> wanted_;
  std::vector<Executor> executors_;
  UniqueFd vm_;
  std::array<UniqueFd, 3> clients_;
  ChannelTable channels_{loop_,
                         ledgers_,
                         {figures_.name, &slices_.slot_page(), guard_,
                          [this](const vf_link::Executor& message) {
                            wanted_.push_back(message);
                            return true;
                          },
                          [] {}}};
  PciFunction function_{loop_, channels_, figures_, guard_};
  UniqueFd vfio_listener_ = Listen(SOCK_STREAM);
  UniqueFd channel_listener_ = Listen(SOCK_SEQPACKET);
  const int vfio_fd_ = vfio_listener_.get();
  const int channel_fd_ = channel_listener_.get();
  VfioServer vfio_{loop_, std::move(vfio_listener_), function_, channels_, figures_, guard_, [](bool) {}};
  ChannelServer channel_server_{loop_, std::move(channel_listener_), channels_, figures_, guard_};
};

const std::array<Bed::Step, 15> Bed::kSteps = {
    &Bed::ConnectVm, &Bed::VersionText, &Bed::AnyMessage,   &Bed::AnyBytes,      &Bed::MapRam,
    &Bed::Unmap,     &Bed::SetIrqs,     &Bed::Register,     &Bed::Control,       &Bed::ConnectClient,
    &Bed::Request,   &Bed::AnyRequest,  &Bed::ExecutorSays, &Bed::ExecutorFails, &Bed::ResetByVgpud};

int LowestFreeFd() {
  const UniqueFd fd{::dup(STDIN_FILENO)};
  return fd.get();
}

}  // namespace
}  // namespace vgpud::vfio

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool once = (std::signal(SIGPIPE, SIG_IGN), vgpud::SetLogLevel(vgpud::LogLevel::kError), true);
  (void)once;
  const int before = vgpud::vfio::LowestFreeFd();
  std::make_unique<vgpud::vfio::Bed>()->Play({data, size});
  if (vgpud::vfio::LowestFreeFd() != before) std::abort();
  return 0;
}
