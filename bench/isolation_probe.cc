// SPDX-License-Identifier: Apache-2.0
// What a client of a VF waits for, for bench/isolation_bench.py: register reads over a vfio-user socket, and launches
// of an empty kernel through libcuda.so.1. Prints the median of each in microseconds.
//
// usage: isolation_probe reads SOCKET COUNT | isolation_probe launches COUNT
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "bench/probe_kernel.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "vfio/wire/wire.h"

namespace vgpud::bench {
namespace {

namespace wire = vfio::wire;

constexpr char kEmpty[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n";

double MedianUs(std::vector<uint64_t> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<long>(samples.size() / 2), samples.end());
  return static_cast<double>(samples[samples.size() / 2]) / 1000.0;
}

void Exchange(int socket, const void* request, size_t bytes, void* reply, size_t reply_bytes) {
  if (::send(socket, request, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes) ||
      ::recv(socket, reply, reply_bytes, MSG_WAITALL) != static_cast<ssize_t>(reply_bytes))
    std::exit(2);
}

int Reads(const std::string& path, int count) {
  const UniqueFd socket = *ConnectUnix(path, SOCK_STREAM);
  struct {
    wire::Header head{1, static_cast<uint16_t>(wire::Command::kVersion), sizeof head + sizeof(wire::Version), 0, 0};
    wire::Version version;
  } hello;
  wire::Header answer;
  Exchange(socket.get(), &hello, sizeof hello, &answer, sizeof answer);
  std::vector<char> rest(answer.bytes - sizeof answer);
  (void)!::recv(socket.get(), rest.data(), rest.size(), MSG_WAITALL);
  struct {
    wire::Header head{2, static_cast<uint16_t>(wire::Command::kRegionRead), sizeof head + sizeof(wire::RegionAccess), 0,
                      0};
    wire::RegionAccess access{VGPU_REG_MAGIC, wire::kBar0, 4};
  } request;
  char reply[sizeof(wire::Header) + sizeof(wire::RegionAccess) + 4];
  std::vector<uint64_t> samples;
  for (int i = 0; i < count; ++i) {
    const uint64_t start = MonotonicNs();
    Exchange(socket.get(), &request, sizeof request, reply, sizeof reply);
    samples.push_back(MonotonicNs() - start);
  }
  fmt::print("{:.3f}\n", MedianUs(samples));
  return 0;
}

int Launches(int count) {
  const ProbeKernel kernel(kEmpty, "empty");
  std::vector<uint64_t> samples;
  for (int i = 0; i < count; ++i) {
    const uint64_t start = MonotonicNs();
    kernel.LaunchAndWait(nullptr);
    samples.push_back(MonotonicNs() - start);
  }
  fmt::print("{:.3f}\n", MedianUs(samples));
  return 0;
}

}  // namespace
}  // namespace vgpud::bench

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "reads" && argc == 4) return vgpud::bench::Reads(argv[2], std::max(1, std::atoi(argv[3])));
  if (mode == "launches" && argc == 3) return vgpud::bench::Launches(std::max(1, std::atoi(argv[2])));
  fmt::print(stderr, "usage: isolation_probe reads SOCKET COUNT | isolation_probe launches COUNT\n");
  return 2;
}
