// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/executor_link.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace vgpud::vfio {

namespace {

constexpr size_t kMostWaiting = 1024;

EventBudgets OnlyMessages(uint32_t per_second) {
  EventBudgets budgets{};
  budgets[static_cast<size_t>(GuardedEvent::kMessage)] = per_second;
  return budgets;
}

}  // namespace

bool KillProcess(const UniqueFd& pidfd) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH;
}

ExecutorLink::ExecutorLink(EventLoop& loop, UniqueFd socket, UniqueFd pidfd, Events events)
    : loop_(loop),
      socket_(ForeignFd{std::move(socket)}),
      pidfd_(std::move(pidfd)),
      events_(std::move(events)),
      guard_(OnlyMessages(kMessagesPerSecond), Now(), [] {}) {
  out_ = std::make_unique<MessageQueue>(loop, socket_.get());
  readable_ = loop.OnReadable(socket_.get(), [this] { OnMessage(); });
  death_ = loop.OnReadable(pidfd_.get(), [this] { OnDead(); });
  kill_timer_ = loop.Timer([this] { Kill(); });
  go_on_ = loop.Timer([this] {
    if (!ending_) readable_->Resume();
  });
}

void ExecutorLink::Attach(const exec_link::Attach& attach, std::vector<SharedFd> fds) {
  memory_ = attach.watched != 0 ? Memory::kUndecided : Memory::kByFiles;
  out_->SendStruct(attach, std::move(fds));
}

void ExecutorLink::MapArea(uint32_t id, const Area& area) {
  if (memory_ == Memory::kUndecided) return waiting_areas_.emplace_back(id, area), void();
  SendArea(id, area);
}

void ExecutorLink::SendArea(uint32_t id, const Area& area) {
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
    if (memory_ == Memory::kWatched) {
      if (pieces.size() == kMaxPieces) send();
      mapped_.Expect(id, piece);
      pieces.push_back({0, piece.writable, piece.offset, piece.bytes});
      continue;
    }
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

void ExecutorLink::UnmapArea(uint32_t id) {
  mapped_.Revoke(id);
  std::erase_if(waiting_areas_, [id](const auto& waiting) { return waiting.first == id; });
  out_->SendStruct(exec_link::Area{exec_link::Kind::kUnmapArea, id});
  unmapping_[id] = out_->accepted();
}

void ExecutorLink::AllowLoad() { out_->SendStruct(exec_link::Plain{exec_link::Kind::kLoadReply}); }

void ExecutorLink::TellQuotas(const exec_link::Quotas& quotas) {
  out_->SendStruct(quotas);
  if (out_->waiting() > kMostWaiting) Kill();
}

void ExecutorLink::End() {
  if (ending_) return;
  ending_ = true;
  // The socket object lives on (its watches refer to it); the peer sees EOF.
  ::shutdown(socket_.get(), SHUT_RDWR);
  readable_->Pause();
  kill_timer_->Arm(kExitGrace);
}

void ExecutorLink::Kill() {
  if (!KillProcess(pidfd_)) events_.kill();
}

void ExecutorLink::OnMessage() {
  auto message = ReceiveMessage(socket_.get());
  guard_.Count(GuardedEvent::kMessage);
  if (const Ns wait = guard_.Wait(EventGuard::Bit(GuardedEvent::kMessage), Now()); wait != Ns{0}) {
    readable_->Pause();
    go_on_->Arm(wait);
  }
  if (message) return Handle(std::move(*message));
  if (message.error().code == std::errc::resource_unavailable_try_again) return;
  End();  // EOF: it exits; anything else: it no longer speaks our language
}

void ExecutorLink::Handle(Message message) {
  const auto kind = message.As<exec_link::Kind>();
  if (kind && *kind == exec_link::Kind::kUnmapped) {
    if (const auto area = message.As<exec_link::Area>(); area) {
      // An answer to what it cannot have read: pieces that nobody counts any more would wait for it without end.
      if (const auto told = unmapping_.find(area->area); told != unmapping_.end()) {
        if (out_->sent() < told->second) return Kill();
        unmapping_.erase(told);
      }
      // What it says is believed only when it is what has been seen.
      if (memory_ == Memory::kWatched && !mapped_.Forget(area->area)) return Kill();
      return events_.unmapped(area->area);
    }
  } else if (kind && (*kind == exec_link::Kind::kVramRequest || *kind == exec_link::Kind::kHostRequest)) {
    if (const auto request = message.As<exec_link::Vram>(); request) {
      out_->SendStruct(events_.memory(*request));
      // An executor that asks without reading the answers gets no more of our memory.
      if (out_->waiting() > kMostWaiting) Kill();
      return;
    }
  } else if (kind && *kind == exec_link::Kind::kWatched) {
    if (OnWatched(std::move(message))) return;
  }
  if (kind && *kind == exec_link::Kind::kLoadRequest)
    if (message.As<exec_link::Plain>() && events_.load()) return;
  if (kind && *kind == exec_link::Kind::kLoaded)
    if (const auto loaded = message.As<exec_link::Loaded>(); loaded) return events_.loaded(loaded->code_bytes);
  if (kind && *kind == exec_link::Kind::kDoorbells)
    if (const auto doorbells = message.As<exec_link::Doorbells>(); doorbells) return events_.doorbells(*doorbells);
  LOG(kWarning, "executor sent an unknown message ({} bytes): ended", message.bytes.size());
  End();
}

Result<void> ExecutorLink::OnWatched(Message message) {
  if (memory_ != Memory::kUndecided || (!message.fds.empty() && message.fds.size() != 2))
    return Fail(std::errc::bad_message, "watched at the wrong time");
  RefuseFds(socket_.get());
  memory_ = message.fds.empty() ? Memory::kByFiles : Memory::kWatched;
  if (!message.fds.empty()) {
    watch_ = std::make_unique<SyscallWatch>(
        loop_, message.fds[0].Trust(), [this](const SyscallWatch::Call& call) { return Judge(call); },
        [this] { mapped_.Undelivered(); });
    workers_ = std::make_unique<SyscallWatch>(loop_, message.fds[1].Trust(),
                                              [this](const SyscallWatch::Call& call) { return Offend(call); });
  }
  for (const auto& [id, area] : std::exchange(waiting_areas_, {})) SendArea(id, area);
  return {};
}

SyscallWatch::Verdict ExecutorLink::Judge(const SyscallWatch::Call& call) {
  const SyscallWatch::Verdict verdict = mapped_.Judge(call);
  return verdict.kind == SyscallWatch::Verdict::Kind::kLeave ? Offend(call) : verdict;
}

SyscallWatch::Verdict ExecutorLink::Offend(const SyscallWatch::Call& call) {
  Kill();
  events_.offended(call.Name());
  return {};
}

void ExecutorLink::OnDead() {
  death_->Pause();
  readable_->Pause();
  go_on_->Pause();
  events_.dead();
}

}  // namespace vgpud::vfio
