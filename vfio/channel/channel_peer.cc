// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/channel_peer.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/fd.h"

namespace vgpud::vfio {
namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // asm-generic/socket.h, Linux 6.5
#endif

// The inode of its pidfd, which no other process ever has (Linux 6.9); 0 where that is not so.
uint64_t PidfdInode(int socket) {
  int number = -1;
  socklen_t size = sizeof number;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &number, &size) != 0) return 0;
  const UniqueFd pidfd{number};
  struct stat own {};
  struct stat st {};
  const bool own_kind = ::fstat(pidfd.get(), &st) == 0;
  // Before, all pidfds shared the inode of every anonymous file, an eventfd's for example.
  const auto event = MakeEventFd();
  if (!own_kind || !event || ::fstat(event->get(), &own) != 0 || own.st_dev == st.st_dev) return 0;
  return st.st_ino;
}

}  // namespace

Peer PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  Peer peer{credentials.uid, credentials.pid, 0};
  peer.process = peer.pid > 0 ? static_cast<uint64_t>(peer.pid) : PidfdInode(socket);
  return peer;
}

const char* WhyRefused(std::span<const Peer> open, const Peer& peer) {
  const auto of = [&](auto&& same) { return static_cast<size_t>(std::count_if(open.begin(), open.end(), same)); };
  if (open.size() >= kMaxConnections) return "the VF has as many connections as it can";
  if (of([&](const Peer& p) { return p.uid == peer.uid; }) >= kMaxConnectionsPerUser)
    return "its user has as many connections to this VF as one may";
  if (peer.process != 0 && of([&](const Peer& p) { return p.process == peer.process; }) >= kMaxConnectionsPerProcess)
    return "it has as many connections to this VF as a process may";
  return nullptr;
}

}  // namespace vgpud::vfio
