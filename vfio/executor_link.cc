#include "vfio/executor_link.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/log.h"

namespace vgpud {

void KillProcess(const UniqueFd& pidfd) { ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0); }

bool Area::Overlaps(const IovaRange& range) const {
  return std::any_of(pieces.begin(), pieces.end(), [&](const FilePiece& p) { return p.guest.Overlaps(range); });
}

ExecutorLink::ExecutorLink(EventLoop& loop, UniqueFd socket, UniqueFd pidfd, Events events)
    : socket_(std::move(socket)), pidfd_(std::move(pidfd)), events_(std::move(events)) {
  out_ = std::make_unique<MessageQueue>(loop, socket_.get());
  readable_ = loop.OnReadable(socket_.get(), [this] { OnMessage(); });
  death_ = loop.OnReadable(pidfd_.get(), [this] { OnDead(); });
  kill_timer_ = loop.Timer([this] { Kill(); });
}

void ExecutorLink::Attach(const exec_link::Attach& attach, std::vector<SharedFd> fds) {
  out_->SendStruct(attach, std::move(fds));
}

void ExecutorLink::MapArea(uint32_t id, const Area& area) {
  constexpr size_t kMaxPieces = (kMaxMessageBytes - sizeof(exec_link::Area)) / sizeof(exec_link::Piece);
  exec_link::Area head{exec_link::Kind::kMapArea, id, area.bytes, static_cast<uint32_t>(area.pieces.size())};
  std::vector<exec_link::Piece> pieces;
  std::vector<SharedFd> fds;
  std::vector<std::byte> bytes;
  const auto send = [&] {
    head.count = static_cast<uint32_t>(pieces.size());
    bytes.resize(sizeof head + pieces.size() * sizeof(exec_link::Piece));
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, pieces.data(), bytes.size() - sizeof head);
    out_->Send(bytes, std::move(fds));
    head.first_piece += head.count;
    pieces.clear();
    fds.clear();
  };
  for (const FilePiece& piece : area.pieces) {
    auto fd = std::find(fds.begin(), fds.end(), piece.file);
    if (pieces.size() == kMaxPieces || (fd == fds.end() && fds.size() == kMaxMessageFds)) {
      send();
      fd = fds.end();
    }
    const auto index = static_cast<uint32_t>(fd - fds.begin());
    if (fd == fds.end()) fds.push_back(piece.file);
    pieces.push_back({index, piece.writable, piece.offset, piece.bytes});
  }
  if (!pieces.empty()) send();
}

void ExecutorLink::UnmapArea(uint32_t id) { out_->SendStruct(exec_link::Area{exec_link::Kind::kUnmapArea, id}); }

void ExecutorLink::End() {
  if (ending_) return;
  ending_ = true;
  // The socket object lives on (its watches refer to it); the peer sees EOF.
  ::shutdown(socket_.get(), SHUT_RDWR);
  readable_->Pause();
  kill_timer_->Arm(kExitGrace);
}

void ExecutorLink::Kill() { KillProcess(pidfd_); }

void ExecutorLink::OnMessage() {
  auto message = ReceiveMessage(socket_.get());
  if (message) return Handle(*message);
  if (message.error().code == std::errc::resource_unavailable_try_again) return;
  End();  // EOF: it exits; anything else: it no longer speaks our language
}

void ExecutorLink::Handle(const Message& message) {
  const auto kind = message.As<exec_link::Kind>();
  if (kind && *kind == exec_link::Kind::kUnmapped) {
    if (const auto area = message.As<exec_link::Area>(); area) return events_.unmapped(area->area);
  } else if (kind && *kind == exec_link::Kind::kVramRequest) {
    if (const auto request = message.As<exec_link::Vram>(); request) {
      out_->SendStruct(events_.vram(request->delta_bytes));
      // An executor that asks without reading the answers gets no more of our memory.
      if (out_->waiting() > 1024) Kill();
      return;
    }
  }
  LOG(kWarning, "executor sent an unknown message ({} bytes): ended", message.bytes.size());
  End();
}

void ExecutorLink::OnDead() {
  death_->Pause();
  readable_->Pause();
  events_.dead();
}

}  // namespace vgpud
