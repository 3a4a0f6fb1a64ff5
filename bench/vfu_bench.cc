// SPDX-License-Identifier: Apache-2.0
// A 4-byte BAR0 read through the real vgpud-vf against a bare echo process on the same kind of socket with messages of
// the same sizes; both clients block. Both run in turns in this process, so that the machine's mood hits both alike.
//   vfu_bench PATH-TO-VGPUD-VF [READS-PER-ROUND]
// Prints p50 of both in microseconds and their ratio, with all processes on one core and on two. Exit 1 when a ratio
// is above 1.3.
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "base/vf_link.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/scratch_dir.h"
#include "vfio/wire/wire.h"

namespace vgpud::bench {
namespace {

namespace wire = vfio::wire;

constexpr double kTarget = 1.3;
constexpr int kRounds = 10;
constexpr size_t kRequestBytes = sizeof(wire::Header) + sizeof(wire::RegionAccess);
constexpr size_t kReplyBytes = kRequestBytes + 4;

void Pin(pid_t pid, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(pid, sizeof set, &set);
}

void Exchange(int socket, const void* request, size_t request_bytes, void* reply, size_t reply_bytes) {
  if (::send(socket, request, request_bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(request_bytes) ||
      ::recv(socket, reply, reply_bytes, MSG_WAITALL) != static_cast<ssize_t>(reply_bytes)) {
    fmt::print(stderr, "vfu_bench: the other side is gone\n");
    std::exit(2);
  }
}

struct Peer {
  pid_t pid = -1;
  UniqueFd socket;
  UniqueFd link;
};

Peer StartEcho() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::exit(2);
  Peer peer;
  peer.pid = ::fork();
  if (peer.pid == 0) {
    ::close(ends[0]);
    char buffer[4096] = {};
    while (::recv(ends[1], buffer, sizeof buffer, 0) > 0)
      if (::send(ends[1], buffer, kReplyBytes, MSG_NOSIGNAL) < 0) break;
    ::_exit(0);
  }
  ::close(ends[1]);
  peer.socket = UniqueFd{ends[0]};
  return peer;
}

Peer StartVf(const char* program, const std::string& folder) {
  const std::string vfio = folder + "/vfio.sock";
  const std::string channels = folder + "/channel.sock";
  SocketPair link = *MakeSeqpacketPair();
  Peer peer;
  peer.pid = ::fork();
  if (peer.pid == 0) {
    if (link.b.get() == vf_link::kVfLinkFd)
      ::fcntl(link.b.get(), F_SETFD, 0);
    else
      ::dup2(link.b.get(), vf_link::kVfLinkFd);
    ::setenv("VGPUD_LOG", "error", 1);
    ::execl(program, program, "--name", "bench", "--vfio-socket", vfio.c_str(), "--channel-socket", channels.c_str(),
            nullptr);
    ::_exit(127);
  }
  link.b.Reset();
  vf_link::Configure configure;
  configure.vram_bytes = 1 << 30;
  const SliceMemory slices = *MakeSliceMemory("bench");
  const int fds[] = {slices.grant_fd.get(), slices.slots_fd.get()};
  ::fcntl(link.a.get(), F_SETFL, 0);
  if (!SendStruct(link.a.get(), configure, fds) || !ReceiveMessage(link.a.get())) {
    fmt::print(stderr, "vfu_bench: {} does not start\n", program);
    std::exit(2);
  }
  peer.link = std::move(link.a);
  peer.socket = *ConnectUnix(vfio, SOCK_STREAM);
  struct {
    wire::Header head{1, static_cast<uint16_t>(wire::Command::kVersion), sizeof head + sizeof(wire::Version), 0, 0};
    wire::Version version;
  } hello;
  wire::Header answer;
  Exchange(peer.socket.get(), &hello, sizeof hello, &answer, sizeof answer);
  std::vector<char> rest(answer.bytes - sizeof answer);
  (void)!::recv(peer.socket.get(), rest.data(), rest.size(), MSG_WAITALL);
  return peer;
}

void Measure(const Peer& peer, int reads, std::vector<uint64_t>* samples) {
  struct {
    wire::Header head{2, static_cast<uint16_t>(wire::Command::kRegionRead), kRequestBytes, 0, 0};
    wire::RegionAccess access{VGPU_REG_MAGIC, wire::kBar0, 4};
  } request;
  static_assert(sizeof request == kRequestBytes);
  char reply[kReplyBytes];
  for (int i = 0; i < reads; ++i) {
    const uint64_t start = MonotonicNs();
    Exchange(peer.socket.get(), &request, sizeof request, reply, sizeof reply);
    samples->push_back(MonotonicNs() - start);
  }
}

double MedianUs(std::vector<uint64_t>& samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<long>(samples.size() / 2), samples.end());
  return static_cast<double>(samples[samples.size() / 2]) / 1000.0;
}

bool Run(const char* name, int client_core, int server_core, const Peer& echo, const Peer& vf, int reads) {
  Pin(0, client_core);
  Pin(echo.pid, server_core);
  Pin(vf.pid, server_core);
  std::vector<uint64_t> echo_samples, vf_samples, warm_up;
  Measure(echo, reads / 10 + 1, &warm_up);
  Measure(vf, reads / 10 + 1, &warm_up);
  std::vector<double> echo_rounds;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<uint64_t> one;
    Measure(echo, reads, &one);
    echo_samples.insert(echo_samples.end(), one.begin(), one.end());
    echo_rounds.push_back(MedianUs(one));
    Measure(vf, reads, &vf_samples);
  }
  const auto [low, high] = std::minmax_element(echo_rounds.begin(), echo_rounds.end());
  const double echo_us = MedianUs(echo_samples);
  const double vf_us = MedianUs(vf_samples);
  fmt::print("{}: echo p50 {:.2f} us (rounds {:.2f}..{:.2f}), vgpud-vf p50 {:.2f} us, ratio {:.3f}\n", name, echo_us,
             *low, *high, vf_us, vf_us / echo_us);
  return vf_us / echo_us <= kTarget;
}

}  // namespace
}  // namespace vgpud::bench

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::bench;
  if (argc < 2) {
    fmt::print(stderr, "usage: vfu_bench PATH-TO-VGPUD-VF [READS-PER-ROUND]\n");
    return 2;
  }
  const int reads = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5000;
  const ScratchDir folder;
  Peer echo = StartEcho();
  Peer vf = StartVf(argv[1], folder.path());
  bool good = Run("one core", 0, 0, echo, vf, reads);
  if (std::thread::hardware_concurrency() > 1) good &= Run("two cores", 0, 1, echo, vf, reads);
  for (const Peer* peer : {&echo, &vf}) {
    ::kill(peer->pid, SIGTERM);
    ::waitpid(peer->pid, nullptr, 0);
  }
  return good ? 0 : 1;
}
