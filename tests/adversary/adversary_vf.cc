// SPDX-License-Identifier: Apache-2.0
// Takes the place of vgpud-vf for the VF "bad", with exactly its rights and descriptors: it does what vfio/main.cc does
// until it is in its jail, and then what "target" names. Other VFs get the real program ($REAL_VGPUD_VF).
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/jail/confine.h"
#include "base/jail/jail.h"
#include "base/message.h"
#include "base/vf_link.h"
#include "tests/adversary/adversary.h"

namespace vgpud::adversary {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr int kOomScore = 200;
volatile uint64_t sink;

struct Seat {
  pid_t daemon = 0;
  int link = vf_link::kVfLinkFd;
  SliceView slices;
  UniqueFd executor_pidfd;  // of the last executor that it got
  uint64_t executors = 0;
};

template <class T>
void Send(Seat& seat, const T& message, std::span<const int> fds = {}) {
  const auto sent = SendStruct(seat.link, message, fds);
  if (!sent && !fds.empty()) Say("attack: descriptors on the link: refused: " + sent.error().context);
}

// What comes until `end`; questions are answered as the real one does.
void Serve(Seat& seat, uint64_t end) {
  while (MonotonicNs() < end) {
    pollfd readable{seat.link, POLLIN, 0};
    ::poll(&readable, 1, 10);
    auto message = ReceiveMessage(seat.link);
    if (!message && message.error().code == std::errc::resource_unavailable_try_again) continue;
    if (!message) ::_exit(0);
    const auto kind = message->As<vf_link::Kind>();
    if (kind && *kind == vf_link::Kind::kPing) {
      auto ping = *message->As<vf_link::Ping>();
      ping.kind = vf_link::Kind::kPong;
      Send(seat, ping);
    }
    if (kind && *kind == vf_link::Kind::kShutdown) ::_exit(0);
    if (kind && *kind == vf_link::Kind::kExecutor && message->fds.size() == 2) {
      ++seat.executors;
      seat.executor_pidfd = message->fds[1].Trust();
      message->fds[0].Reset();
    }
  }
}

vf_link::Executor Need(uint64_t generation, uint32_t channel = 0) {
  return {vf_link::Kind::kNeedExecutor, channel, generation, 1, 0};
}

void ExecutorStorm(Seat& seat) {
  uint64_t generation = 0;
  for (const uint64_t end = MonotonicNs() + 3 * kSecond; MonotonicNs() < end;) {
    for (int i = 0; i < 100; ++i) {
      ++generation;
      Send(seat, Need(generation, static_cast<uint32_t>(generation % kMaxExecutors)));
      Send(seat, vf_link::Executor{vf_link::Kind::kChannelClosed, static_cast<uint32_t>(generation % kMaxExecutors),
                                   generation, 1, 0});
    }
    Serve(seat, MonotonicNs() + kSecond / 100);
  }
  Say("attack: " + std::to_string(seat.executors) + " executors in 3 s");
}

void GenerationBack(Seat& seat) {
  for (const uint64_t generation : {5, 3, 5, 0}) Send(seat, Need(generation, 1));
}

void StopExecutor(Seat& seat) {
  Send(seat, Need(1));
  Serve(seat, MonotonicNs() + kSecond / 2);
  Report("SIGSTOP to an executor", ::syscall(SYS_pidfd_send_signal, seat.executor_pidfd.get(), SIGSTOP, nullptr, 0));
}

void FloodLink(Seat& seat) {
  vf_link::Events lie;
  for (uint64_t& count : lie.count) count = ~uint64_t{0};
  for (const uint64_t end = MonotonicNs() + 2 * kSecond; MonotonicNs() < end;) {
    Send(seat, lie);
    Send(seat, vf_link::Client{});
  }
}

void Garbage(Seat& seat) {
  const char bytes[100] = {77};
  Report("garbage on the link", ::send(seat.link, bytes, sizeof bytes, MSG_DONTWAIT));
}

void Descriptors(Seat& seat) {
  const std::vector<int> fds(kMaxMessageFds, STDERR_FILENO);
  Send(seat, vf_link::Client{}, fds);
}

void Scribble(Seat& seat) {
  auto* words = reinterpret_cast<std::atomic<uint32_t>*>(&seat.slices.slot_page());
  uint64_t state = MonotonicNs() | 1;
  for (const uint64_t end = MonotonicNs() + 2 * kSecond; MonotonicNs() < end;) {
    for (size_t i = 0; i < kSlotPageBytes / sizeof(uint32_t); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      words[i].store(static_cast<uint32_t>(state >> 62));
    }
    Ring(seat.slices.slot_page());
    Serve(seat, MonotonicNs() + kSecond / 1000);
  }
}

void WriteGrantPage(Seat& seat) {
  const_cast<GrantPage&>(seat.slices.grant_page()).grant.store(GrantPage::kRun);
  Say("attack: write to the grant page: ALLOWED");
}

void Compute(Seat& seat) {
  for (const uint64_t end = MonotonicNs() + 2 * kSecond; MonotonicNs() < end;) {
    for (int i = 0; i < 1'000'000; ++i) sink = sink + 1;
    Serve(seat, MonotonicNs() + 1);
  }
}

void CutMemory(Seat&) {
  const int memory = static_cast<int>(::syscall(SYS_memfd_create, "ram", 0));
  Report("ftruncate of memory", ::ftruncate(memory, 4096));
}

void ForgedPongs(Seat& seat) {
  for (uint64_t i = 0; i < 10; ++i) Send(seat, vf_link::Ping{vf_link::Kind::kPong, 0, 1000 + i});
}

#define CALL(number, ...) Report(#number, ::syscall(number, ##__VA_ARGS__))

constexpr Attack<Seat> kAttacks[] = {
    {"executor-storm", "asks for thousands of executors per second", ExecutorStorm},
    {"generation-back", "channels with generations that go back", GenerationBack},
    {"usage-lies", "uses more memory than there is",
     [](Seat& s) {
       Send(s, vf_link::Usage{vf_link::Kind::kUsage, 1, uint64_t{1} << 63});
     }},
    {"quotas-unasked", "answers to quotas that vgpud has not sent",
     [](Seat& s) { Send(s, vf_link::QuotasSet{.ok = 1}); }},
    {"channel-lies", "an executor for channel 4 billion", [](Seat& s) { Send(s, Need(1, ~uint32_t{0})); }},
    {"hello-twice", "begins a second time", [](Seat& s) { Send(s, vf_link::Hello{}); }},
    {"watched-twice", "a second watch of its jail",
     [](Seat& s) {
       const int fds[] = {STDERR_FILENO};
       Send(s, vf_link::Plain{vf_link::Kind::kWatched}, fds);
     }},
    {"link-flood", "floods its link", FloodLink},
    {"link-garbage", "an unknown message", Garbage},
    {"link-descriptors", "descriptors with a message that has none", Descriptors},
    {"deaf", "reads and answers nothing", [](Seat&) { Idle(); }},
    {"forged-pongs", "answers what was not asked", ForgedPongs},
    {"slot-scribble", "random states over the slot page for 2 s", Scribble},
    {"grant-write", "grants its VF the GPU", WriteGrantPage},
    {"computes", "computes for 2 s", Compute},
    {"log-flood", "writes to stderr as fast as it can", [](Seat&) { FloodLog(Lines::kDifferent); }},
    {"log-repeat", "writes the same line to stderr as fast as it can", [](Seat&) { FloodLog(Lines::kAlike); }},
    {"stop-executor", "SIGSTOP to its executor by pidfd", StopExecutor},
    {"truncate", "cuts guest memory off under its executors", CutMemory},
    {"ptrace", "attaches to vgpud", [](Seat& s) { CALL(SYS_ptrace, 16, s.daemon, 0, 0); }},
    {"kill", "SIGKILL to vgpud", [](Seat& s) { CALL(SYS_kill, s.daemon, SIGKILL); }},
    {"open", "reads /etc/shadow", [](Seat&) { CALL(SYS_openat, AT_FDCWD, "/etc/shadow", O_RDONLY); }},
    {"fork", "a process of its own", [](Seat&) { CALL(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
    {"execve", "another program", [](Seat&) { CALL(SYS_execve, "/bin/sh", nullptr, nullptr); }},
    {"socket", "the network", [](Seat&) { CALL(SYS_socket, AF_INET, SOCK_STREAM, 0); }},
    {"wx-mmap", "memory to write and execute",
     [](Seat&) { CALL(SYS_mmap, 0, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }},
    {"map-guest", "maps a file", [](Seat&) { CALL(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, STDERR_FILENO, 0); }},
    {"own-signals", "F_SETOWN: signals of a socket to vgpud",
     [](Seat& s) { CALL(SYS_fcntl, s.link, F_SETOWN, s.daemon); }},
};

Result<Seat> TakePlace(Confinement confinement, std::optional<uid_t> user, const Target& target) {
  SetOomScore(kOomScore);
  std::signal(SIGPIPE, SIG_IGN);
  Seat seat;
  seat.daemon = target.daemon;
  pollfd readable{seat.link, POLLIN, 0};
  ::poll(&readable, 1, -1);
  Message message = TRY(ReceiveMessage(seat.link));
  const auto configure = TRY(message.As<vf_link::Configure>());
  seat.slices = TRY(MapSlices(message.fds.at(0).get(), message.fds.at(1).get()));
  TRY(SendStruct(seat.link, vf_link::Hello{}));
  TRY(EnterConfinement(confinement, user));
  const UniqueFd watch = TRY(EnterJail(JailKind::kVf, configure.watched != 0 ? JailWatch::kAsk : JailWatch::kNone));
  const int fds[] = {watch.get()};
  if (watch) TRY(SendStruct(seat.link, vf_link::Plain{vf_link::Kind::kWatched}, fds));
  return seat;
}

int List() {
  for (const auto& attack : kAttacks) fmt::print("vf.{}\t{}\n", attack.name, attack.about);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return List();
  const std::string_view name = OptionOf(argc, argv, "--name"), user_text = OptionOf(argc, argv, "--user");
  const auto confinement = ParseConfinement(OptionOf(argc, argv, "--confinement")).value_or(Confinement::kNothing);
  std::optional<uid_t> user;
  if (!user_text.empty()) user = static_cast<uid_t>(std::strtoul(user_text.data(), nullptr, 10));
  if (name != "bad") RunReal("REAL_VGPUD_VF", argv);
  const Target target = ReadTarget();
  auto seat = TakePlace(confinement, user, target);
  if (!seat) {
    Say("attack: not in its place: " + seat.error().context);
    return 1;
  }
  Serve(*seat, MonotonicNs() + kSecond);  // until everybody measures
  for (const auto& attack : kAttacks) {
    if (target.attack != std::string("vf.") + attack.name) continue;
    attack.run(*seat);
    Say("attack: " + target.attack + " is through");
  }
  for (;;) Serve(*seat, MonotonicNs() + kSecond);
}

}  // namespace
}  // namespace vgpud::adversary

int main(int argc, char** argv) { return vgpud::adversary::Main(argc, argv); }
