// SPDX-License-Identifier: Apache-2.0
// What calls of the driver API cost a program, beside what the host charges for the bare thing: a message to another
// thread and back, and memcpy. For bench/calls_bench.py. Prints "NAME<tab>MEDIAN<tab>P99<tab>DOORBELLS<tab>INTERRUPTS":
// microseconds, of calls that do not wait the processor time of the caller; and in a guest the exits, per call:
// doorbells that the driver was asked to ring, interrupts that it got.
//
// usage: calls_probe [COUNT]
#include <fmt/core.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "bench/probe_kernel.h"
#include "guest-driver-shim/include/uapi/vgpu_ioctl.h"

namespace vgpud::bench {
namespace {

constexpr char kEmpty[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n";
constexpr int kPostedAtOnce = 200;
// After this long without work everybody sleeps: the program, and the executor behind its ring.
constexpr Ns kAsleep = std::chrono::milliseconds{5};

uint64_t OwnProcessorNs() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

std::atomic<uint64_t> doorbells_rung{0};

// Of this guest's VFs since it was booted; 0 where there are none.
uint64_t InterruptsOfVfs() {
  uint64_t sum = 0;
  std::ifstream table("/proc/interrupts");
  for (std::string line; std::getline(table, line);) {
    if (line.find("vgpu") == std::string::npos) continue;
    std::istringstream counts(line.substr(line.find(':') + 1));
    for (uint64_t count = 0; counts >> count;) sum += count;
  }
  return sum;
}

struct Exits {
  uint64_t doorbells = doorbells_rung;
  uint64_t interrupts = InterruptsOfVfs();
};

void Print(const char* name, std::vector<double> us, const Exits& before, int calls) {
  const Exits now;
  std::sort(us.begin(), us.end());
  fmt::print("{}\t{:.3f}\t{:.3f}\t{:.4f}\t{:.4f}\n", name, us[us.size() / 2], us[us.size() * 99 / 100],
             static_cast<double>(now.doorbells - before.doorbells) / calls,
             static_cast<double>(now.interrupts - before.interrupts) / calls);
}

// Each call timed by itself, after a pause that is not.
template <class Call>
void PrintCalls(const char* name, int count, Call call, Ns pause = Ns{0}) {
  std::vector<double> us;
  const Exits before;
  for (int i = 0; i < count + 20; ++i) {
    if (pause != Ns{0}) std::this_thread::sleep_for(pause);
    const uint64_t start = MonotonicNs();
    call();
    if (i >= 20) us.push_back(static_cast<double>(MonotonicNs() - start) / 1e3);
  }
  Print(name, std::move(us), before, count + 20);
}

// Bursts, waited for outside of the time that is counted.
template <class Call>
void PrintPosted(const ProbeKernel& kernel, const char* name, int count, Call call) {
  std::vector<double> us;
  const Exits before;
  const int bursts = std::max(10, count / kPostedAtOnce);
  for (int i = 0; i < bursts; ++i) {
    const uint64_t start = OwnProcessorNs();
    for (int n = 0; n < kPostedAtOnce; ++n) call();
    us.push_back(static_cast<double>(OwnProcessorNs() - start) / 1e3 / kPostedAtOnce);
    kernel.Wait();
  }
  Print(name, std::move(us), before, bursts * kPostedAtOnce);
}

void EventFdRoundTrips(int count) {
  const UniqueFd there(::eventfd(0, EFD_CLOEXEC)), back(::eventfd(0, EFD_CLOEXEC));
  std::atomic<bool> over{false};
  std::thread other([&] {
    uint64_t value;
    while (::read(there.get(), &value, sizeof value) == sizeof value && !over) {
      value = 1;
      (void)!::write(back.get(), &value, sizeof value);
    }
  });
  PrintCalls("eventfd round trip", count, [&] {
    uint64_t value = 1;
    (void)!::write(there.get(), &value, sizeof value);
    (void)!::read(back.get(), &value, sizeof value);
  });
  over = true;
  const uint64_t value = 1;
  (void)!::write(there.get(), &value, sizeof value);
  other.join();
}

void SpinningRoundTrips(int count) {
  alignas(64) std::atomic<uint32_t> there{0};
  alignas(64) std::atomic<uint32_t> back{0};
  constexpr uint32_t kOver = ~uint32_t{0};
  std::thread other([&] {
    for (uint32_t seen = 0; seen != kOver;) {
      const uint32_t now = there.load(std::memory_order_acquire);
      if (now == seen) continue;
      back.store(seen = now, std::memory_order_release);
    }
  });
  uint32_t number = 0;
  PrintCalls("spinning round trip", count, [&] {
    there.store(++number, std::memory_order_release);
    while (back.load(std::memory_order_acquire) != number) {
    }
  });
  there = kOver;
  other.join();
}

// In a guest: what the exit costs that rings the doorbell of the program's own channel, whoever is awake.
void Doorbells(int count) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    if (!std::filesystem::read_symlink(entry, error).native().starts_with("/dev/vgpu")) continue;
    const int fd = std::stoi(entry.path().filename());
    return PrintCalls("doorbell by itself", count, [fd] { (void)::ioctl(fd, VGPU_IOC_KICK); });
  }
}

void Copies(const ProbeKernel& kernel, const char* size, size_t bytes, int count) {
  std::vector<char> one(bytes, 1), two(bytes, 2);
  uint64_t device = 0;
  kernel.Call("cuMemAlloc_v2", &device, bytes);
  const auto named = [size](const char* what) { return fmt::format("{} {}", what, size); };
  PrintCalls(named("memcpy").c_str(), count, [&] {
    std::memcpy(two.data(), one.data(), bytes);
    asm volatile("" ::"r"(two.data()) : "memory");
  });
  PrintCalls(named("copy to the GPU").c_str(), count,
             [&] { kernel.Call("cuMemcpyHtoD_v2", device, static_cast<const void*>(one.data()), bytes); });
  PrintCalls(named("copy from the GPU").c_str(), count,
             [&] { kernel.Call("cuMemcpyDtoH_v2", static_cast<void*>(two.data()), device, bytes); });
  kernel.Call("cuMemFree_v2", device);
}

void Measure(int count) {
  EventFdRoundTrips(count);
  if (std::thread::hardware_concurrency() > 1) SpinningRoundTrips(count);
  const ProbeKernel kernel(kEmpty, "empty");
  void* event = nullptr;
  kernel.Call("cuEventCreate", &event, 0u);
  const auto record = kernel.Find<int (*)(void*, void*)>("cuEventRecord");
  PrintCalls("launch + wait", count, [&] { kernel.LaunchAndWait(nullptr); });
  PrintCalls(
      "launch + wait, all asleep", std::max(20, count / 10), [&] { kernel.LaunchAndWait(nullptr); }, kAsleep);
  Doorbells(count);
  PrintPosted(kernel, "posted launch", count, [&] { kernel.Launch(nullptr); });
  PrintPosted(kernel, "event record", count, [&] { record(event, nullptr); });
  Copies(kernel, "64 B", 64, count);
  Copies(kernel, "1 MiB", size_t{1} << 20, std::max(20, count / 20));
  Copies(kernel, "16 MiB", size_t{16} << 20, std::max(20, count / 200));
}

}  // namespace
}  // namespace vgpud::bench

// In place of the C library's, for libcuda.so.1 as well: what a program defines goes before what libraries do.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (request == VGPU_IOC_KICK) ++vgpud::bench::doorbells_rung;
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

int main(int argc, char** argv) {
  if (argc > 2) {
    fmt::print(stderr, "usage: calls_probe [COUNT]\n");
    return 2;
  }
  vgpud::bench::Measure(argc == 2 ? std::max(20, std::atoi(argv[1])) : 2000);
  return 0;
}
