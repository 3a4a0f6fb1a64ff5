// SPDX-License-Identifier: Apache-2.0
#include "vgpud/keep/keeper.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "vgpud/host/private_dir.h"

namespace vgpud::daemon {
namespace {

constexpr int kPatienceMs = 2000;
constexpr const char* kSocketName = "keep.sock";
constexpr const char* kSecretName = "keep.secret";

using Secret = std::array<std::byte, keep::kSecretBytes>;

bool WaitFor(int fd, short events) {
  pollfd entry{fd, events, 0};
  return ::poll(&entry, 1, kPatienceMs) == 1;
}

Result<UniqueFd> SecretFile(const std::string& runtime_dir) {
  const UniqueFd directory = TRY(OpenPrivateDir(runtime_dir, 0755, "runtime directory", "--runtime-dir"));
  return OpenPrivateFile(directory, kSecretName);
}

Result<Secret> NewSecret(const std::string& runtime_dir) {
  const UniqueFd file = TRY(SecretFile(runtime_dir));
  Secret secret;
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return FailErrno("getrandom");
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return FailErrno(fmt::format("cannot write {}/{}", runtime_dir, kSecretName));
  return secret;
}

Result<Secret> OldSecret(const std::string& runtime_dir) {
  const UniqueFd file = TRY(SecretFile(runtime_dir));
  Secret secret;
  if (::pread(file.get(), secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return Fail(std::errc::no_such_file_or_directory, fmt::format("{}/{} holds no secret", runtime_dir, kSecretName));
  return secret;
}

keep::Entry Hello(const Secret& secret) {
  keep::Entry hello{.kind = keep::Kind::kHello, .note_bytes = keep::kSecretBytes};
  std::copy(secret.begin(), secret.end(), hello.note);
  return hello;
}

Result<UniqueFd> Connect(const std::string& runtime_dir) {
  UniqueFd session = TRY(ConnectUnix(fmt::format("{}/{}", runtime_dir, kSocketName), SOCK_SEQPACKET));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(session.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid())
    return Fail(std::errc::operation_not_permitted, fmt::format("it runs as user {}, not as this one", peer.uid));
  const Secret secret = TRY(OldSecret(runtime_dir));
  TRY(SendStruct(session.get(), Hello(secret)));
  return session;
}

// The number is of whoever listened; it may be somebody else's by now, but not between the look and the signal.
void KillPeer(int session) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(session, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return;
  const UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0))};
  const UniqueFd name{::open(fmt::format("/proc/{}/comm", peer.pid).c_str(), O_RDONLY | O_CLOEXEC)};
  char text[16] = {};
  if (!process || !name || ::read(name.get(), text, sizeof text - 1) <= 0) return;
  if (std::string_view(text) == "vgpud-keep\n") ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

Result<std::vector<Keeper::Kept>> TakeAll(int session) {
  std::vector<Keeper::Kept> all;
  for (;;) {
    if (!WaitFor(session, POLLIN)) return Fail(std::errc::timed_out, "it does not answer");
    Message message = TRY(ReceiveMessage(session));
    const auto entry = TRY(message.As<keep::Entry>());
    if (entry.kind == keep::Kind::kAll) return all;
    if (entry.kind != keep::Kind::kKept || entry.note_bytes > sizeof entry.note || entry.Name().empty())
      return Fail(std::errc::bad_message, "it answers with something else");
    Keeper::Kept kept{std::string(entry.Name()), {entry.note, entry.note + entry.note_bytes}, {}};
    for (ForeignFd& fd : message.fds) kept.fds.push_back(fd.Trust());
    all.push_back(std::move(kept));
  }
}

}  // namespace

Result<std::unique_ptr<Keeper>> Keeper::Open(const std::string& runtime_dir, const std::string& program,
                                             std::vector<Kept>* kept) {
  if (auto session = Connect(runtime_dir)) {
    auto all = TakeAll(session->get());
    if (all) {
      *kept = std::move(*all);
      return std::unique_ptr<Keeper>(new Keeper(runtime_dir, std::move(*session)));
    }
    LOG(kError, "the vgpud-keep of an earlier vgpud is of no use: {}; it is ended, and what it holds with it",
        all.error().context);
    KillPeer(session->get());
  }
  SocketPair pair = TRY(MakeSeqpacketPair());
  const UniqueFd listening = TRY(ListenUnix(fmt::format("{}/{}", runtime_dir, kSocketName), SOCK_SEQPACKET));
  const Secret secret = TRY(NewSecret(runtime_dir));
  TRY(SendStruct(pair.a.get(), Hello(secret)));
  Child::Spec spec;
  spec.program = program;
  spec.arguments = {"vgpud-keep", runtime_dir};  // for who reads a list of processes
  spec.files = {{pair.b.get(), keep::kSessionFd}, {listening.get(), keep::kListenFd}};
  std::unique_ptr<Keeper> keeper{new Keeper(runtime_dir, std::move(pair.a))};
  keeper->process_ = std::make_unique<Child>(TRY(Child::Spawn(spec)));
  return keeper;
}

bool Keeper::Send(keep::Entry entry, const std::string& name, std::span<const int> fds) {
  if (lost_) return false;
  if (name.size() >= sizeof entry.name) return false;
  name.copy(entry.name, sizeof entry.name - 1);
  Result<void> sent = SendStruct(session_.get(), entry, fds);
  while (!sent && sent.error().code == std::errc::resource_unavailable_try_again && WaitFor(session_.get(), POLLOUT))
    sent = SendStruct(session_.get(), entry, fds);
  if (sent) return true;
  lost_ = true;
  LOG(kError,
      "vgpud-keep takes nothing more ({}): VFs end when vgpud ends; stop and start vgpud when no guest needs it",
      sent.error().context);
  return false;
}

bool Keeper::Store(const std::string& name, std::span<const std::byte> note, std::span<const int> fds,
                   uint32_t grant_page) {
  keep::Entry entry{.kind = keep::Kind::kStore, .grant_page = grant_page};
  if (note.size() > sizeof entry.note || fds.size() > keep::kMostFds) return false;
  entry.note_bytes = static_cast<uint32_t>(note.size());
  std::copy(note.begin(), note.end(), entry.note);
  return Send(entry, name, fds);
}

void Keeper::Forget(const std::string& name) { (void)Send({.kind = keep::Kind::kForget}, name, {}); }

void Keeper::End() {
  (void)Send({.kind = keep::Kind::kEnd}, "", {});
  // It closes its end when it ends.
  (void)WaitFor(session_.get(), POLLIN);
  for (const char* file : {kSocketName, kSecretName}) ::unlink(fmt::format("{}/{}", runtime_dir_, file).c_str());
  lost_ = true;
}

}  // namespace vgpud::daemon
