// SPDX-License-Identifier: Apache-2.0
// What an executor may do by its jail, done to harm: the slice pages, its link, guest memory, computing time.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/jail/rules.h"
#include "base/message.h"
#include "tests/adversary/adversary.h"

namespace vgpud::adversary {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kAttackTime = 2 * kSecond;
constexpr int kComputers = 4;

volatile uint64_t sink;

void ComputeUntil(uint64_t end) {
  for (uint64_t n = 0; (n & 1023) != 0 || MonotonicNs() < end; ++n) sink = sink + n;
}

[[noreturn]] void ComputeForEver() {
  for (;;) sink = sink + 1;
}

void StartThreads(int count, void (*run)()) {
  for (int i = 0; i < count; ++i) std::thread(run).detach();
}

// ---- the slice pages ----

void WriteGrantPage(Post& post) {
  auto* page = const_cast<GrantPage*>(&post.slices.grant_page());
  Report("mprotect of the grant page", ::mprotect(page, kGrantPageBytes, PROT_READ | PROT_WRITE));
  page->grant.store(GrantPage::kRun);
  Say("attack: write to the grant page: ALLOWED");
}

void ScribbleSlots(Post& post) {
  auto* words = reinterpret_cast<std::atomic<uint32_t>*>(&post.slices.slot_page());
  uint64_t state = MonotonicNs() | 1;
  for (const uint64_t end = MonotonicNs() + kAttackTime; MonotonicNs() < end;) {
    for (size_t i = 0; i < kSlotPageBytes / sizeof(uint32_t); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      words[i].store(state & 1 ? static_cast<uint32_t>(state >> 62) : static_cast<uint32_t>(state >> 32));
    }
    Ring(post.slices.slot_page());
    Nap(1);
  }
}

void FalseSlots(Post& post) {
  for (ExecSlot& slot : post.slices.slot_page().slots) slot.state.store(static_cast<uint32_t>(ExecState::kRunning));
  Ring(post.slices.slot_page());
  Nap(2000);
}

void BellStorm(Post& post) {
  static SlotPage* page;
  page = &post.slices.slot_page();
  post.Enter(ExecState::kReady);
  StartThreads(1, [] {
    for (;;) Ring(*page);
  });
  for (const uint64_t end = MonotonicNs() + kAttackTime; MonotonicNs() < end;) Ring(*page);
}

void FutexSleepers(Post& post) {
  static const std::atomic<uint32_t>* bell;
  bell = &post.slices.slot_page().bell;
  StartThreads(200, [] {
    for (;;) FutexWait(bell, bell->load());
  });
  auto* grant = const_cast<std::atomic<uint32_t>*>(&post.slices.grant_page().grant);
  for (const uint64_t end = MonotonicNs() + kAttackTime; MonotonicNs() < end; Nap(1)) {
    FutexWakeAll(grant);
    Ring(post.slices.slot_page());
  }
}

// ---- turns ----

void RunForEver(Post& post) {
  post.TakeTurn();
  ComputeForEver();
}

void SleepOnGpu(Post& post) {
  post.TakeTurn();
  Idle();
}

void StopOnGpu(Post& post) {
  post.TakeTurn();
  ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), SIGSTOP);
  Idle();
}

void LeaveLate(Post& post, bool compute) {
  for (;;) {
    post.TakeTurn();
    const uint64_t end = post.slices.grant_page().deadline_ns.load() + 8 * kMillisecond;
    if (compute) ComputeUntil(end);
    while (MonotonicNs() < end) Nap(1);
    post.Enter(ExecState::kReady);
    while (IsGranted(post.slices.grant_page())) ::sched_yield();
  }
}

// Ready, on the GPU, gone, ready: as many switches as there can be.
void Fidget(Post& post) {
  for (const uint64_t end = MonotonicNs() + kAttackTime; MonotonicNs() < end;) {
    post.TakeTurn();
    post.Enter(ExecState::kIdle);
  }
}

void RunWithoutGrant(Post& post) {
  post.Enter(ExecState::kReady);
  StartThreads(1, ComputeForEver);
  for (;;) {
    post.slot().state.store(static_cast<uint32_t>(ExecState::kRunning));
    Nap(1);
  }
}

// ---- computing time ----

void ComputeIdle(Post& post) {
  post.Enter(ExecState::kIdle);
  StartThreads(kComputers, ComputeForEver);
  Nap(2000);
}

void ComputeOnSchedulerCpu(Post& post) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(SchedulerCpu(post.slices.grant_page()).value_or(0), &one);
  Report("sched_setaffinity to the scheduler's CPU", ::sched_setaffinity(0, sizeof one, &one));
  StartThreads(kComputers, ComputeForEver);
  Nap(2000);
}

// With stacks so small that memory is not what stops it.
bool StartSleeper() {
  pthread_attr_t attributes;
  pthread_t thread;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 16384);
  errno = ::pthread_create(
      &thread, &attributes,
      [](void*) -> void* {
        ::prctl(PR_SET_NAME, exec_link::kGpuWorkerName);
        Idle();
      },
      nullptr);
  return errno == 0;
}

void ThreadStorm(Post& post) {
  int made = 0;
  while (made < 4000 && StartSleeper()) ++made;
  Report(std::to_string(made) + " threads and one more", made < 4000 ? -1 : 0);
  post.TakeTurn();
  Idle();
}

void ForkStorm(Post&) {
  for (int i = 0; i < 1000; ++i) Report("clone", ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

void Barriers(Post&) {
  Report("membarrier(GLOBAL_EXPEDITED)", ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0));
  for (const uint64_t end = MonotonicNs() + kAttackTime; MonotonicNs() < end;)
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

// As an executor may when its VF gets more memory.
void RaiseOwnLimit() {
  rlimit data{};
  if (::getrlimit(RLIMIT_DATA, &data) != 0) return;
  data.rlim_cur = data.rlim_max;
  ::setrlimit(RLIMIT_DATA, &data);
}

void MemoryBomb(Post&) {
  RaiseOwnLimit();
  constexpr size_t kStep = 64 << 20, kMost = size_t{12} << 30;
  for (size_t all = 0; all < kMost; all += kStep) {
    auto* memory =
        static_cast<char*>(::mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return Report("mmap after " + std::to_string(all >> 20) + " MiB", -1);
    for (size_t i = 0; i < kStep; i += 4096) memory[i] = 1;
  }
  Say("attack: 12 GiB of memory: ALLOWED");
}

// As much as this process gets, and keeps it: beside others that do the same.
void MemoryCrowd(Post&) {
  RaiseOwnLimit();
  constexpr size_t kStep = 16 << 20;
  size_t all = 0;
  for (;; all += kStep) {
    void* memory = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) break;
    std::memset(memory, 1, kStep);
  }
  Report("more memory than " + std::to_string(all >> 20) + " MiB", -1);
  Idle();
}

void Descriptors(Post&) {
  int count = 0;
  while (::eventfd(0, 0) >= 0) ++count;
  Report("descriptor " + std::to_string(count) + " and more", -1);
}

// ---- stderr ----

void ForgeLog(Post&) {
  Say("\nvgpud: error: vf=good: parked after forgery\n\x1b[2J\x1b]0;forged\x07\r\xff\xfevgpud: forged");
}

// ---- the link ----

void AskVram(Post& post, int64_t delta, int times) {
  for (int i = 0; i < times; ++i) {
    (void)SendStruct(post.link, exec_link::Vram{exec_link::Kind::kVramRequest, 0, delta, 0});
    if (times < 100) Nap(10);
  }
}

void VramLies(Post& post) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (const int64_t delta : {int64_t{-1}, -(int64_t{1} << 40), kLeast, kMost, kMost, int64_t{1} << 62, int64_t{-4096}})
    AskVram(post, delta, 2);
  Nap(300);
}

void FloodLink(Post& post) {
  const exec_link::Doorbells lie{.count = ~uint64_t{0}, .throttled = ~uint64_t{0}, .throttled_ns = ~uint64_t{0}};
  for (const uint64_t end = MonotonicNs() + kAttackTime; MonotonicNs() < end;)
    if (!SendStruct(post.link, lie)) ::sched_yield();
}

void Garbage(Post& post) {
  const char bytes[48] = {99, 1, 2, 3};
  Report("garbage on the link", ::send(post.link, bytes, sizeof bytes, MSG_DONTWAIT));
  Nap(1000);
}

void LinkDescriptors(Post& post) {
  std::vector<int> files(kMaxMessageFds, post.call.get());
  for (int i = 0; i < 1000; ++i) {
    const auto sent = SendStruct(post.link, exec_link::Plain{exec_link::Kind::kWatched}, files);
    if (i == 0)
      errno = sent ? 0 : static_cast<int>(sent.error().code), Report("descriptors on the link", sent ? 0 : -1);
  }
}

void DescriptorToClient(Post& post) {
  const int fds[] = {post.link};
  const auto sent = SendStruct(post.call.get(), exec_link::Plain{exec_link::Kind::kWatched}, fds);
  if (!sent) errno = static_cast<int>(sent.error().code);
  Report("a descriptor to the guest process", sent ? 0 : -1);
}

// ---- guest memory ----

constexpr uint64_t kWindow = kGuestWindowBegin + (uint64_t{1} << 30);

void* MapPiece(const exec_link::Piece& piece, uint64_t more_bytes, uint64_t more_offset, uint64_t at = kWindow) {
  return ::mmap(reinterpret_cast<void*>(at), piece.bytes + more_bytes, PROT_READ | (piece.writable ? PROT_WRITE : 0),
                MAP_SHARED | MAP_FIXED, kGuestFileNumber, static_cast<off_t>(piece.offset + more_offset));
}

void ReportMap(const char* what, void* mapped) { Report(what, mapped == MAP_FAILED ? -1 : 0); }

void MapBeyond(Post& post) { ReportMap("a page more than its piece", MapPiece(post.NextPiece(), 4096, 0)); }
void MapElsewhere(Post& post) { ReportMap("another offset", MapPiece(post.NextPiece(), 0, uint64_t{1} << 30)); }
void MapTwice(Post& post) {
  const auto piece = post.NextPiece();
  ReportMap("its piece (which it may)", MapPiece(piece, 0, 0));
  ReportMap("the same piece again", MapPiece(piece, 0, 0, kWindow + (uint64_t{1} << 30)));
}
void MapOutsideWindow(Post& post) {
  ReportMap("outside of the window", MapPiece(post.NextPiece(), 0, 0, kGuestWindowEnd + (uint64_t{1} << 40)));
}
void GrowMapping(Post& post) {
  const auto piece = post.NextPiece();
  void* memory = MapPiece(piece, 0, 0);
  ReportMap("its piece (which it may)", memory);
  ReportMap("mremap to four times of it", ::mremap(memory, piece.bytes, 4 * piece.bytes, MREMAP_MAYMOVE));
}
void KeepMemory(Post& post) {
  ReportMap("its piece (which it may)", MapPiece(post.NextPiece(), 0, 0));
  (void)SendStruct(post.link, exec_link::Area{exec_link::Kind::kUnmapped});
  Nap(1000);
  Say("attack: memory kept after saying that it is unmapped: ALLOWED");
}
// The kernel may refuse to cut what lies behind, and keep all of it.
void UnmapBeyond(Post& post) {
  const auto piece = post.NextPiece();
  ReportMap("its piece (which it may)", MapPiece(piece, 0, 0));
  Report("a page more let go", ::munmap(reinterpret_cast<void*>(kWindow), piece.bytes + 4096));
}
void SayUnmappedEarly(Post& post) {
  const auto piece = post.NextPiece();
  ReportMap("its piece (which it may)", MapPiece(piece, 0, 0));
  Report("its piece let go (which it may)", ::munmap(reinterpret_cast<void*>(kWindow), piece.bytes));
  (void)SendStruct(post.link, exec_link::Area{exec_link::Kind::kUnmapped});
  Nap(1000);
  Say("attack: said that it is unmapped before that was sure: ALLOWED");
}
void MapByWorker(Post& post) { ReportMap("its piece by another thread", MapPiece(post.NextPiece(), 0, 0)); }
void ReadFile(Post& post) {
  ReportMap("its piece (which it may)", MapPiece(post.NextPiece(), 0, 0));
  char byte = 0;
  Report("pread of the guest's file", ::pread(kGuestFileNumber, &byte, 1, 0));
}
void SendFile(Post& post) {
  ReportMap("its piece (which it may)", MapPiece(post.NextPiece(), 0, 0));
  const int fds[] = {kGuestFileNumber};
  const auto sent = SendStruct(post.call.get(), exec_link::Plain{exec_link::Kind::kWatched}, fds);
  if (!sent) errno = static_cast<int>(sent.error().code);
  Report("the guest's file to the guest process", sent ? 0 : -1);
}

constexpr ExecAttack kAttacks[] = {
    {"grant-write", "grants itself the GPU", WriteGrantPage},
    {"slot-scribble", "random words over the slot page for 2 s", ScribbleSlots},
    {"false-slots", "all 64 slots say kRunning", FalseSlots},
    {"bell-storm", "two threads ring all the time", BellStorm},
    {"futex-sleepers", "200 sleepers on the bell, wake-ups of the grant word", FutexSleepers},
    {"never-leaves", "computes on the GPU for ever", RunForEver},
    {"sleeps-on-gpu", "says kRunning and sleeps for ever", SleepOnGpu},
    {"stops-on-gpu", "says kRunning and stops itself", StopOnGpu},
    {"late-computing", "leaves the GPU 8 ms late in each turn, computing", [](Post& p) { LeaveLate(p, true); }},
    {"late-asleep", "leaves the GPU 8 ms late in each turn, asleep", [](Post& p) { LeaveLate(p, false); }},
    {"fidget", "enters and leaves the GPU as often as it can", Fidget},
    {"runs-ungranted", "says kRunning in turns of others and computes", RunWithoutGrant},
    {"computes-idle", "four threads compute for ever, it says kIdle", ComputeIdle},
    {"scheduler-cpu", "four threads compute on the scheduler's CPU", ComputeOnSchedulerCpu},
    {"thread-storm", "4000 threads with the name of the workers, asleep on the GPU", ThreadStorm},
    {"fork-storm", "1000 processes", ForkStorm},
    {"barrier-storm", "interrupts every CPU by membarrier", Barriers},
    {"memory-bomb", "12 GiB of host memory", MemoryBomb},
    {"memory-crowd", "thirty-two of them, each with as much memory as it gets", MemoryCrowd},
    {"descriptors", "as many descriptors as there are", Descriptors},
    {"log-flood", "writes to stderr as fast as it can", [](Post&) { FloodLog(Lines::kDifferent); }},
    {"log-repeat", "writes the same line to stderr as fast as it can", [](Post&) { FloodLog(Lines::kAlike); }},
    {"log-forgery", "lines of vgpud and terminal commands on stderr", ForgeLog},
    {"vram-lies", "negative, huge and wrapping amounts of VRAM", VramLies},
    {"vram-deaf", "100000 requests, no answer read", [](Post& p) { AskVram(p, 4096, 100'000); }},
    {"link-flood", "figures that wrap, as fast as it can", FloodLink},
    {"link-garbage", "an unknown message", Garbage},
    {"link-descriptors", "1000 messages with 16 descriptors each", LinkDescriptors},
    {"client-descriptor", "its link to the guest process", DescriptorToClient},
    {"map-beyond", "one page more than its piece of guest memory", MapBeyond, true},
    {"map-elsewhere", "another part of the guest's memory", MapElsewhere, true},
    {"map-twice", "the same piece a second time", MapTwice, true},
    {"map-outside", "guest memory outside of the window", MapOutsideWindow, true},
    {"map-grow", "grows guest memory with mremap", GrowMapping, true},
    {"map-keep", "keeps memory that it says to have let go", KeepMemory, true},
    {"unmap-beyond", "lets go a page more than its piece of guest memory", UnmapBeyond, true},
    {"unmap-early", "says that memory is let go before it is sure", SayUnmappedEarly, true},
    {"map-by-worker", "a thread that computes maps guest memory", MapByWorker},
    {"read-file", "reads the guest's memory through its descriptor", ReadFile, true},
    {"send-file", "gives the guest's memory to the guest process", SendFile, true},
    {"exit-at-once", "ends as soon as it is started", [](Post&) { ::_exit(1); }},
};

}  // namespace

std::span<const ExecAttack> WorldAttacks() { return kAttacks; }

}  // namespace vgpud::adversary
