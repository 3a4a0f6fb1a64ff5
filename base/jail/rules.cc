// SPDX-License-Identifier: Apache-2.0
#include "base/jail/rules.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>

namespace vgpud {
namespace {

using Answer = SyscallRule::Answer;
using Test = ArgumentRule::Test;

constexpr ArgumentRule Is(uint8_t index, uint64_t value) { return {index, Test::kEqual, value, 0}; }
constexpr ArgumentRule Not(uint8_t index, uint64_t value) { return {index, Test::kNot, value, 0}; }
constexpr ArgumentRule Only(uint8_t index, uint64_t bits) { return {index, Test::kMasked, 0, ~bits & 0xffffffff}; }
constexpr ArgumentRule Masked(uint8_t index, uint64_t mask, uint64_t value) {
  return {index, Test::kMasked, value, mask};
}
constexpr ArgumentRule AtLeast(uint8_t index, uint64_t value) { return {index, Test::kAtLeast, value, 0}; }
constexpr ArgumentRule Below(uint8_t index, uint64_t value) { return {index, Test::kBelow, value, 0}; }
constexpr ArgumentRule OwnPid(uint8_t index) { return {index, Test::kOwnPid, 0, 0}; }
// Private or shared. Not those that move sleepers of other processes to another word.
constexpr ArgumentRule FutexOperation(uint64_t operation) {
  return {1, Test::kMasked, operation, ~uint64_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME} & 0xffffffff};
}
constexpr SyscallRule Allow(const char* name, ArgumentRule a = {}, ArgumentRule b = {}, ArgumentRule c = {}) {
  return {name, Answer::kAllow, 0, {a, b, c}};
}
constexpr SyscallRule Ask(const char* name, ArgumentRule a = {}, ArgumentRule b = {}, ArgumentRule c = {}) {
  return {name, Answer::kAsk, 0, {a, b, c}};
}
constexpr SyscallRule Refuse(const char* name, int error, ArgumentRule a = {}) {
  return {name, Answer::kRefuse, error, {a}};
}
constexpr SyscallRule Kill(const char* name) { return {name, Answer::kKill, 0, {}}; }

constexpr uint64_t kReadWrite = PROT_READ | PROT_WRITE;
// A thread of this process: no process of its own, no namespaces.
constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080  // linux/sched.h, Linux 5.6
#endif
constexpr uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                    CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME;
// Memory of its own, with nothing that makes the kernel treat it differently: huge pages are mapped and unmapped in
// other units, shared ones outlive a mapping.
constexpr ArgumentRule PrivateMemory(uint64_t must, uint64_t may) {
  return {3, Test::kMasked, MAP_PRIVATE | MAP_ANONYMOUS | must, ~may & 0xffffffff};
}
constexpr ArgumentRule kNewThread{0, Test::kMasked, kThread, kThread | kNewNamespaces};
constexpr uint64_t kHarmless = MAP_NORESERVE | MAP_STACK;
constexpr ArgumentRule kPidfdSignal = Is(1, SIGKILL);
constexpr uint64_t kPassRights = 83;  // SO_PASSRIGHTS of Linux 6.16
constexpr uint64_t kOwnFiles = kGuestFileNumber;
// NVIDIA's kernel modules: the controls of nvidia.ko have a type of their own (nv-ioctl-numbers.h), those of
// nvidia-uvm.ko are small numbers and two large ones (uvm_linux_ioctl.h).
constexpr uint64_t kIoctlTypeMask = 0xff00, kNvidiaIoctls = 'F' << 8;
constexpr uint64_t kMostUvmIoctls = 0x100, kUvmInitialize = 0x30000001, kUvmDeinitialize = 0x30000002;

// What an event loop on handed-over descriptors, threads, malloc and abort() need. Nothing here opens a path or makes a
// socket.
constexpr SyscallRule kBoth[] = {
    Allow("brk"),
    Allow("clock_getres"),
    Allow("clock_gettime"),
    Allow("clock_nanosleep"),
    Refuse("clone3", ENOSYS),  // its flags are behind a pointer; C libraries fall back to clone
    Allow("close"),
    Allow("eventfd2"),
    Allow("exit"),
    Allow("exit_group"),
    Allow("fcntl", Is(1, F_GETFD)),
    Allow("fcntl", Is(1, F_GETFL)),
    Allow("fstat"),
    Allow("futex", FutexOperation(FUTEX_WAIT)),
    Allow("futex", FutexOperation(FUTEX_WAKE)),
    Allow("futex", FutexOperation(FUTEX_WAIT_BITSET)),
    Allow("futex", FutexOperation(FUTEX_WAKE_BITSET)),
    Allow("get_robust_list", Is(0, 0)),
    Allow("getpid"),
    Allow("getrandom"),
    Allow("gettid"),
    Allow("gettimeofday"),
    Allow("getuid"),
    Allow("madvise", Is(2, MADV_DONTNEED)),
    Allow("madvise", Is(2, MADV_FREE)),
    Allow("madvise", Is(2, MADV_HUGEPAGE)),
    Allow("madvise", Is(2, MADV_NOHUGEPAGE)),
    Allow("madvise", Is(2, MADV_DONTDUMP)),
    Allow("membarrier"),
    Allow("nanosleep"),
    Allow("newfstatat", Is(3, AT_EMPTY_PATH)),
    Refuse("open", EACCES),  // malloc looks at a file under /proc, abort() for a terminal; there is none
    Refuse("openat", EACCES),
    Allow("poll"),
    Allow("ppoll"),
    Allow("prctl", Is(0, PR_SET_NAME)),
    Refuse("prctl", EINVAL, Not(0, PR_SET_NAME)),
    Allow("recvfrom"),
    Allow("recvmsg"),
    Allow("restart_syscall"),
    Allow("rseq"),
    Allow("rt_sigaction"),
    Allow("rt_sigprocmask"),
    Allow("rt_sigreturn"),
    Allow("sched_getaffinity"),
    Allow("sched_yield"),
    Allow("sendto"),
    Allow("set_robust_list"),
    Allow("sigaltstack"),
    Allow("sysinfo"),
    Allow("tgkill", OwnPid(0)),
};

constexpr SyscallRule kVf[] = {
    Allow("accept4"),
    Allow("clone", kNewThread),
    Allow("epoll_ctl"),
    Allow("epoll_pwait"),
    Allow("epoll_pwait2"),
    Allow("epoll_wait"),
    Allow("fallocate", Is(1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)),
    Allow("fcntl", Is(1, F_SETFD)),
    Allow("fcntl", Is(1, F_SETFL)),
    Allow("fcntl", Is(1, F_DUPFD_CLOEXEC)),
    Allow("fcntl", Is(1, F_ADD_SEALS)),
    Allow("fcntl", Is(1, F_GET_SEALS)),
    Allow("fstatfs"),
    Allow("getsockopt"),
    Allow("ioctl", Is(1, SECCOMP_IOCTL_NOTIF_RECV)),
    Allow("ioctl", Is(1, SECCOMP_IOCTL_NOTIF_SEND)),
    Allow("ioctl", Is(1, SECCOMP_IOCTL_NOTIF_ADDFD)),

    Allow("memfd_create"),
    Allow("mmap", Only(2, kReadWrite), PrivateMemory(0, kHarmless | MAP_FIXED | MAP_FIXED_NOREPLACE)),
    Allow("mprotect", Only(2, kReadWrite)),
    Allow("mremap", Only(3, MREMAP_MAYMOVE)),
    Allow("munmap"),
    Allow("pidfd_send_signal", kPidfdSignal),
    Allow("pread64"),
    Allow("pwrite64"),
    Allow("read"),
    Allow("readv"),
    Allow("sendmsg"),
    Allow("setitimer"),
    Allow("setsockopt", Is(1, SOL_SOCKET), Is(2, kPassRights)),
    Allow("shutdown"),
    Allow("socketpair", Is(0, AF_UNIX)),
    Allow("statx", Is(2, AT_EMPTY_PATH | AT_STATX_DONT_SYNC)),
    Allow("timerfd_settime"),
    Allow("write"),
    Allow("writev"),
};

// Guest memory comes and goes by mmap and munmap in the window alone, and the watcher is asked; it can't be made
// executable or writable, grown, moved, read or written through its descriptor. The watcher can't tell threads apart
// where it doesn't see their numbers, so only one of them can ask, and that one can't start another.
constexpr SyscallRule kExec[] = {
    Allow("getrusage"),
    Allow("mmap", Only(2, kReadWrite), PrivateMemory(0, kHarmless | MAP_FIXED_NOREPLACE)),
    Allow("mmap", Only(2, kReadWrite), PrivateMemory(MAP_FIXED, kHarmless), AtLeast(0, kGuestWindowEnd)),
    Ask("mmap", Only(2, kReadWrite), Is(3, MAP_SHARED | MAP_FIXED)),
    Allow("mprotect", Only(2, kReadWrite), AtLeast(0, kGuestWindowEnd)),
    Allow("mremap", AtLeast(0, kGuestWindowEnd), Only(3, MREMAP_MAYMOVE)),
    Refuse("mremap", ENOMEM, Below(0, kGuestWindowEnd)),
    Allow("munmap", AtLeast(0, kGuestWindowEnd)),
    Ask("munmap", Below(0, kGuestWindowEnd)),
    Allow("prlimit64", Is(0, 0), Is(1, RLIMIT_DATA)),  // when the VF gets more memory; up to its hard limit
    Allow("read", Below(0, kOwnFiles)),
    Allow("sendmsg", Below(0, kOwnFiles)),
    Allow("write", Below(0, kOwnFiles)),
    Allow("writev", Below(0, kOwnFiles)),
};

// Those that compute, and their placement.
constexpr SyscallRule kExecWorkers[] = {
    Allow("clone", kNewThread),
    Allow("getrusage"),
    Allow("mmap", Only(2, kReadWrite), PrivateMemory(0, kHarmless | MAP_FIXED_NOREPLACE)),
    Allow("mmap", Only(2, kReadWrite), PrivateMemory(MAP_FIXED, kHarmless), AtLeast(0, kGuestWindowEnd)),
    Allow("mprotect", Only(2, kReadWrite), AtLeast(0, kGuestWindowEnd)),
    Allow("mremap", AtLeast(0, kGuestWindowEnd), Only(3, MREMAP_MAYMOVE)),
    Refuse("mremap", ENOMEM, Below(0, kGuestWindowEnd)),
    Allow("munmap", AtLeast(0, kGuestWindowEnd)),
    Allow("read", Below(0, kOwnFiles)),
    Allow("sendmsg", Below(0, kOwnFiles)),
    Allow("write", Below(0, kOwnFiles)),
    Allow("writev", Below(0, kOwnFiles)),
};

// Takes descriptors from its one peer, holds them and gives them back; maps pages that it was told of.
constexpr SyscallRule kKeep[] = {
    Allow("accept4"),
    Allow("clone", kNewThread),
    Allow("geteuid"),
    Allow("getsockopt", Is(1, SOL_SOCKET), Is(2, SO_PEERCRED)),
    Allow("mmap", Only(2, kReadWrite), PrivateMemory(0, kHarmless | MAP_FIXED | MAP_FIXED_NOREPLACE)),
    Allow("mmap", Only(2, kReadWrite), Is(3, MAP_SHARED)),
    Allow("mprotect", Only(2, kReadWrite)),
    Allow("mremap", Only(3, MREMAP_MAYMOVE)),
    Allow("munmap"),
    Allow("sendmsg"),
    Allow("write", Is(0, 2)),
};

// Our own libcuda, where that is the driver, asks whether memory is there, and does without an answer.
constexpr SyscallRule kNested[] = {
    Refuse("mincore", ENOSYS),
    Refuse("process_vm_readv", ENOSYS),
};

// What a GPU's driver needs beside: its device files, which are all that there is to be opened, their controls and
// their memory. A driver that makes its context again takes dup and F_SETFL too. Which calls a closed library makes is
// not written anywhere: what has no row is refused with EPERM, as containers refuse it, and only what a driver never
// does is the end.
constexpr SyscallRule kExecDriver[] = {
    Refuse("access", ENOENT),
    Allow("clone", kNewThread),
    Allow("dup"),
    Allow("fcntl", Is(1, F_SETFD)),
    Allow("fcntl", Is(1, F_SETFL)),
    Allow("fcntl", Is(1, F_DUPFD_CLOEXEC)),
    Allow("fcntl", Is(1, F_GETFD)),
    Allow("fcntl", Is(1, F_GETFL)),
    Allow("getdents64"),
    Allow("geteuid"),
    Allow("getrusage"),
    Allow("ioctl", Masked(1, kIoctlTypeMask, kNvidiaIoctls)),
    Allow("ioctl", Below(1, kMostUvmIoctls)),
    Allow("ioctl", Is(1, kUvmInitialize)),
    Allow("ioctl", Is(1, kUvmDeinitialize)),
    Allow("lseek"),
    Refuse("lstat", ENOENT),
    Allow("madvise"),
    Allow("memfd_create"),
    Allow("mincore"),
    Allow("mmap", Only(2, kReadWrite)),
    Allow("mprotect", Only(2, kReadWrite)),
    Allow("mremap", Only(3, MREMAP_MAYMOVE)),
    Allow("munmap"),
    Allow("newfstatat"),
    Allow("open"),
    Allow("openat"),
    Allow("pipe2"),
    Allow("pread64"),
    Allow("prlimit64", Is(0, 0), Is(2, 0)),
    Allow("read", Below(0, kOwnFiles)),
    Refuse("readlink", ENOENT),
    Allow("sched_get_priority_max"),
    Allow("sched_get_priority_min"),
    Allow("sendmsg", Below(0, kOwnFiles)),
    Refuse("stat", ENOENT),
    Refuse("statfs", ENOENT),
    Allow("uname"),
    Allow("write", Below(0, kOwnFiles)),
    Allow("writev", Below(0, kOwnFiles)),

    Kill("add_key"),
    Kill("bpf"),
    Kill("capset"),
    Kill("chroot"),
    Kill("delete_module"),
    Kill("execve"),
    Kill("execveat"),
    Kill("finit_module"),
    Kill("fsmount"),
    Kill("fsopen"),
    Kill("init_module"),
    Kill("io_uring_enter"),
    Kill("io_uring_register"),
    Kill("io_uring_setup"),
    Kill("kexec_file_load"),
    Kill("kexec_load"),
    Kill("keyctl"),
    Kill("mount"),
    Kill("move_mount"),
    Kill("open_by_handle_at"),
    Kill("open_tree"),
    Kill("perf_event_open"),
    Kill("pidfd_getfd"),
    Kill("pivot_root"),
    Kill("process_madvise"),
    Kill("process_vm_writev"),
    Kill("ptrace"),
    Kill("reboot"),
    Kill("request_key"),
    Kill("setgid"),
    Kill("setgroups"),
    Kill("setns"),
    Kill("setregid"),
    Kill("setresgid"),
    Kill("setresuid"),
    Kill("setreuid"),
    Kill("setuid"),
    Kill("swapoff"),
    Kill("swapon"),
    Kill("umount2"),
    Kill("unshare"),
    Kill("userfaultfd"),
};

}  // namespace

std::span<const SyscallRule> RulesForBoth() { return kBoth; }
std::span<const SyscallRule> RulesForNested() { return kNested; }

std::span<const SyscallRule> RulesFor(JailKind kind) {
  switch (kind) {
    case JailKind::kVf:
      return kVf;
    case JailKind::kExec:
      return kExec;
    case JailKind::kExecWorkers:
      return kExecWorkers;
    case JailKind::kKeep:
      return kKeep;
    case JailKind::kExecDriver:
      return kExecDriver;
  }
  return {};
}

int ErrorOtherwise(JailKind kind) { return kind == JailKind::kExecDriver ? EPERM : 0; }

const char* NameOf(JailKind kind) {
  switch (kind) {
    case JailKind::kVf:
      return "vgpud-vf";
    case JailKind::kExec:
      return "vgpud-exec";
    case JailKind::kExecWorkers:
      return "vgpud-exec's workers";
    case JailKind::kKeep:
      return "vgpud-keep";
    case JailKind::kExecDriver:
      return "vgpud-exec with a driver";
  }
  return "?";
}

}  // namespace vgpud
