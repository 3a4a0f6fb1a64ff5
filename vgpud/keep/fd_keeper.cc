// SPDX-License-Identifier: Apache-2.0
#include "vgpud/keep/fd_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/slice_page.h"

namespace vgpud::daemon {
namespace {

// For who connects to say who it is, and to take what it is sent.
constexpr int kPatienceMs = 2000;

bool WaitFor(int fd, short events) {
  pollfd entry{fd, events, 0};
  return ::poll(&entry, 1, kPatienceMs) == 1;
}

// Takes as long for every wrong secret.
bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::byte different{0};
  for (size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == std::byte{0};
}

bool IsOurUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

void FdKeeper::Run() {
  for (;;) {
    if (!session_ && held_.empty()) return;
    pollfd fds[] = {{session_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    // What the last one sent before it ended comes first.
    if (fds[0].revents != 0 && !OnSession()) return;
    if (fds[1].revents != 0 && fds[0].revents == 0) OnConnection();
  }
}

bool FdKeeper::OnSession() {
  auto message = ReceiveMessage(session_.get());
  if (message) return Handle(*message);
  if (message.error().code != std::errc::resource_unavailable_try_again) LoseSession();
  return true;
}

bool FdKeeper::Handle(Message& message) {
  const auto entry = message.As<keep::Entry>();
  if (!entry || entry->version != keep::kVersion || entry->note_bytes > sizeof entry->note) {
    LOG(kError, "a message of vgpud is not understood: {} bytes", message.bytes.size());
    return true;
  }
  switch (entry->kind) {
    case keep::Kind::kHello:
      if (!std::exchange(has_secret_, true)) std::copy_n(entry->note, secret_.size(), secret_.begin());
      return true;
    case keep::Kind::kStore:
      Store(*entry, message);
      return true;
    case keep::Kind::kForget:
      Forget(entry->Name());
      return true;
    case keep::Kind::kEnd:
      return false;
    default:
      LOG(kError, "a message of vgpud has the unknown kind {}", static_cast<uint32_t>(entry->kind));
      return true;
  }
}

void FdKeeper::Store(const keep::Entry& entry, Message& message) {
  const std::string name(entry.Name());
  if (name.empty() || message.fds.size() > keep::kMostFds || entry.grant_page > message.fds.size() ||
      (held_.size() >= keep::kMostEntries && !held_.contains(name))) {
    LOG(kError, "\"{}\" with {} descriptors is not kept", name, message.fds.size());
    return;
  }
  Held held;
  held.note.assign(entry.note, entry.note + entry.note_bytes);
  held.grant_page = entry.grant_page;
  if (entry.grant_page != 0) {
    auto grant = Mapping::Shared(message.fds[entry.grant_page - 1].get(), 0, kGrantPageBytes);
    if (grant) held.grant = std::move(*grant);
    if (!grant) LOG(kError, "\"{}\": its grant page cannot be mapped: {}", name, grant.error().context);
  }
  held.fds = std::move(message.fds);
  held_.insert_or_assign(name, std::move(held));
}

void FdKeeper::Forget(std::string_view name) {
  std::erase_if(held_, [name](const auto& each) {
    const std::string_view other = each.first;
    return other.starts_with(name) && (other.size() == name.size() || other[name.size()] == '/');
  });
}

void FdKeeper::OnConnection() {
  UniqueFd socket{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket) return;
  if (!IsVgpud(socket.get())) {
    LOG(kWarning, "somebody who is not vgpud has connected: refused");
    return;
  }
  // Two cannot be there: each holds the lock of the runtime directory. The one before has ended.
  LoseSession();
  session_ = std::move(socket);
  if (const auto given = GiveAll(session_.get()); !given) {
    LOG(kError, "vgpud does not take what is kept: {}", given.error().context);
    session_.Reset();
  }
}

bool FdKeeper::IsVgpud(int socket) const {
  if (!has_secret_ || !IsOurUser(socket) || !WaitFor(socket, POLLIN)) return false;
  const auto message = ReceiveMessage(socket);
  if (!message || !message->fds.empty()) return false;
  const auto hello = message->As<keep::Entry>();
  return hello && hello->kind == keep::Kind::kHello && hello->version == keep::kVersion &&
         hello->note_bytes == secret_.size() && Same(std::span(hello->note).first(secret_.size()), secret_);
}

Result<void> FdKeeper::GiveAll(int socket) const {
  const auto send = [socket](const keep::Entry& entry, std::span<const int> fds) -> Result<void> {
    for (;;) {
      auto sent = SendStruct(socket, entry, fds);
      if (sent || sent.error().code != std::errc::resource_unavailable_try_again) return sent;
      if (!WaitFor(socket, POLLOUT)) return sent;
    }
  };
  for (const auto& [name, held] : held_) {
    keep::Entry entry{.kind = keep::Kind::kKept, .grant_page = held.grant_page};
    entry.note_bytes = static_cast<uint32_t>(held.note.size());
    name.copy(entry.name, sizeof entry.name - 1);
    std::copy(held.note.begin(), held.note.end(), entry.note);
    std::vector<int> fds;
    for (const ForeignFd& fd : held.fds) fds.push_back(fd.get());
    TRY(send(entry, fds));
  }
  return send(keep::Entry{.kind = keep::Kind::kAll}, {});
}

void FdKeeper::LoseSession() {
  if (!session_) return;
  session_.Reset();
  EndTurns();
  LOG(kWarning, "vgpud is gone: {} things are kept for the next one", held_.size());
}

// As the scheduler does.
void FdKeeper::EndTurns() const {
  for (const auto& [name, held] : held_) {
    if (!held.grant) continue;
    GrantPage& page = *held.grant.At<GrantPage>(0);
    page.vgpud_gone_ns.store(MonotonicNs());
    if ((page.grant.load(std::memory_order_seq_cst) & GrantPage::kRun) == 0) continue;
    page.taken_back_ns.store(MonotonicNs(), std::memory_order_relaxed);
    page.grant.fetch_and(~GrantPage::kRun, std::memory_order_seq_cst);
  }
}

}  // namespace vgpud::daemon
