// SPDX-License-Identifier: Apache-2.0
// One system call each that no executor has to make. Behind the jail lie namespaces and permissions; here the jail has
// to hold by itself.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/adversary/adversary.h"

namespace vgpud::adversary {
namespace {

char text[64];
iovec here{text, sizeof text}, there{reinterpret_cast<void*>(0x400000), sizeof text};

// A call with what it needs, and what it said.
#define CALL(number, ...) Report(#number, ::syscall(number, ##__VA_ARGS__))

constexpr ExecAttack kAttacks[] = {
    {"ptrace", "attaches to vgpud", [](Post& p) { CALL(SYS_ptrace, 16, p.daemon, 0, 0); }},
    {"kill", "SIGKILL to vgpud", [](Post& p) { CALL(SYS_kill, p.daemon, SIGKILL); }},
    {"kill-all", "a signal to everybody", [](Post&) { CALL(SYS_kill, -1, 0); }},
    {"tgkill-daemon", "SIGKILL to vgpud's main thread", [](Post& p) { CALL(SYS_tgkill, p.daemon, p.daemon, SIGKILL); }},
    {"tkill-daemon", "the same by thread id", [](Post& p) { CALL(SYS_tkill, p.daemon, SIGKILL); }},
    {"sigqueue", "queues a signal to vgpud", [](Post& p) { CALL(SYS_rt_sigqueueinfo, p.daemon, SIGTERM, text); }},
    {"process-vm-readv", "reads vgpud's memory",
     [](Post& p) { CALL(SYS_process_vm_readv, p.daemon, &here, 1, &there, 1, 0); }},
    {"process-vm-writev", "writes vgpud's memory",
     [](Post& p) { CALL(SYS_process_vm_writev, p.daemon, &here, 1, &there, 1, 0); }},
    {"pidfd-open", "a descriptor of vgpud", [](Post& p) { CALL(SYS_pidfd_open, p.daemon, 0); }},
    {"pidfd-getfd", "a descriptor out of another process", [](Post& p) { CALL(SYS_pidfd_getfd, p.link, 3, 0); }},
    {"pidfd-signal", "SIGKILL by pidfd", [](Post& p) { CALL(SYS_pidfd_send_signal, p.link, SIGKILL, 0, 0); }},
    {"open-shadow", "reads /etc/shadow", [](Post&) { CALL(SYS_openat, AT_FDCWD, "/etc/shadow", O_RDONLY); }},
    {"open-proc-mem", "writes memory of process 1", [](Post&) { CALL(SYS_open, "/proc/1/mem", O_RDWR); }},
    {"openat2", "opens a path by the newer call", [](Post&) { CALL(SYS_openat2, AT_FDCWD, "/", text, 24); }},
    {"own-signals", "F_SETOWN: signals of a socket to vgpud",
     [](Post& p) { CALL(SYS_fcntl, p.link, F_SETOWN, p.daemon); }},
    {"set-signal", "F_SETSIG: SIGKILL as signal of a socket",
     [](Post& p) { CALL(SYS_fcntl, p.link, F_SETSIG, SIGKILL); }},
    {"async-flag", "O_ASYNC on a shared description", [](Post& p) { CALL(SYS_fcntl, p.link, F_SETFL, O_ASYNC); }},
    {"affinity", "binds vgpud to one CPU",
     [](Post& p) {
       unsigned long one = 1;
       CALL(SYS_sched_setaffinity, p.daemon, sizeof one, &one);
     }},
    {"nice-other", "priority of vgpud", [](Post& p) { CALL(SYS_setpriority, PRIO_PROCESS, p.daemon, 19); }},
    {"nice-user", "priority of all processes of a user", [](Post&) { CALL(SYS_setpriority, PRIO_USER, 0, 19); }},
    {"nice", "priority -20 for itself", [](Post&) { CALL(SYS_setpriority, PRIO_PROCESS, 0, -20); }},
    {"fifo", "SCHED_FIFO for itself",
     [](Post&) {
       const sched_param param{50};
       CALL(SYS_sched_setscheduler, 0, SCHED_FIFO, &param);
     }},
    {"execve", "another program", [](Post&) { CALL(SYS_execve, "/bin/sh", nullptr, nullptr); }},
    {"execveat", "another program by descriptor",
     [](Post& p) { CALL(SYS_execveat, p.link, "", nullptr, nullptr, AT_EMPTY_PATH); }},
    {"fork", "a process of its own", [](Post&) { CALL(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
    {"vfork", "the same by vfork", [](Post&) { CALL(SYS_vfork); }},
    {"clone3", "the same with flags that no filter sees", [](Post&) { CALL(SYS_clone3, text, sizeof text); }},
    {"thread-in-namespace", "a thread in a new user namespace",
     [](Post&) {
       CALL(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUSER, 0, 0, 0, 0);
     }},
    {"wx-mmap", "memory to write and execute",
     [](Post&) { CALL(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }},
    {"x-mprotect", "makes memory executable",
     [](Post&) {
       void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       CALL(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC);
     }},
    {"x-pkey-mprotect", "the same by pkey_mprotect", [](Post&) { CALL(SYS_pkey_mprotect, text, 4096, PROT_EXEC, -1); }},
    {"x-shmat", "the same by System V memory", [](Post&) { CALL(SYS_shmat, 0, 0, 0100000); }},
    {"x-personality", "readable means executable", [](Post&) { CALL(SYS_personality, 0x0400000); }},
    {"truncate-log", "cuts the log off", [](Post&) { CALL(SYS_ftruncate, STDERR_FILENO, 0); }},
    {"memfd", "a file to execute", [](Post&) { CALL(SYS_memfd_create, "x", 0); }},
    {"socket-inet", "the network", [](Post&) { CALL(SYS_socket, AF_INET, SOCK_STREAM, 0); }},
    {"socket-netlink", "the kernel's configuration", [](Post&) { CALL(SYS_socket, AF_NETLINK, SOCK_RAW, 0); }},
    {"socket-unix", "sockets of the host", [](Post&) { CALL(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, text); }},
    {"unshare", "a user namespace", [](Post&) { CALL(SYS_unshare, CLONE_NEWUSER); }},
    {"setns", "somebody else's namespaces", [](Post& p) { CALL(SYS_setns, p.link, 0); }},
    {"mount", "the host's file system", [](Post&) { CALL(SYS_mount, "none", "/", "proc", 0, nullptr); }},
    {"chroot", "another root", [](Post&) { CALL(SYS_chroot, ".."); }},
    {"pivot-root", "another root", [](Post&) { CALL(SYS_pivot_root, ".", "."); }},
    {"setuid", "root", [](Post&) { CALL(SYS_setresuid, 0, 0, 0); }},
    {"capset", "capabilities", [](Post&) { CALL(SYS_capset, text, text); }},
    {"io-uring", "system calls behind the filter", [](Post&) { CALL(SYS_io_uring_setup, 8, text); }},
    {"bpf", "a program in the kernel", [](Post&) { CALL(SYS_bpf, 0, text, 48); }},
    {"perf", "performance counters of others", [](Post&) { CALL(SYS_perf_event_open, text, -1, 0, -1, 0); }},
    {"userfaultfd", "holds the kernel at a page", [](Post&) { CALL(SYS_userfaultfd, 0); }},
    {"keyctl", "keys of others", [](Post&) { CALL(SYS_keyctl, 0, -3, 0, 0, 0); }},
    {"shmget", "System V memory", [](Post&) { CALL(SYS_shmget, 1, 4096, 01666); }},
    {"msgget", "System V queues", [](Post&) { CALL(SYS_msgget, 1, 01666); }},
    {"semget", "System V semaphores", [](Post&) { CALL(SYS_semget, 1, 1, 01666); }},
    {"mq-open", "POSIX queues", [](Post&) { CALL(SYS_mq_open, "x", O_CREAT | O_RDWR, 0600, nullptr); }},
    {"seccomp", "a filter of its own", [](Post&) { CALL(SYS_seccomp, 1, 0, text); }},
    {"dumpable", "lets others trace it", [](Post&) { CALL(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); }},
    {"subreaper", "keeps orphans of others", [](Post&) { CALL(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }},
    {"terminal", "types on a terminal (TIOCSTI)", [](Post&) { CALL(SYS_ioctl, 2, TIOCSTI, text); }},
    {"modules", "a kernel module", [](Post&) { CALL(SYS_init_module, text, 0, ""); }},
    {"reboot", "the end of the host", [](Post&) { CALL(SYS_reboot, 0, 0, 0, 0); }},
    {"clock", "the host's time", [](Post&) { CALL(SYS_clock_settime, 1, text); }},
    {"limits", "limits of its own and of vgpud",
     [](Post& p) { CALL(SYS_prlimit64, p.daemon, RLIMIT_NOFILE, text, 0); }},
    {"timer", "a timer with a signal to others", [](Post&) { CALL(SYS_timer_create, 0, nullptr, text); }},
    {"futex-requeue", "moves sleepers of the grant word to another word (FUTEX_REQUEUE)",
     [](Post& p) {
       uint32_t mine = 0;
       CALL(SYS_futex, &p.slices.grant_page().grant, FUTEX_REQUEUE, 1, 1000, &mine, 0);
     }},
    {"futex-pi", "a lock that lends priorities",
     [](Post& p) { CALL(SYS_futex, &p.slices.slot_page().bell, FUTEX_LOCK_PI, 0, 0, 0, 0); }},
    {"other-abi", "a system call of another architecture's numbers", [](Post&) { CALL(0x40000000 | SYS_getpid); }},
};

}  // namespace

std::span<const ExecAttack> CallAttacks() { return kAttacks; }

}  // namespace vgpud::adversary
