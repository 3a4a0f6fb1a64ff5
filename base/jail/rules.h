// SPDX-License-Identifier: Apache-2.0
// Which system calls the processes that face a guest may make, with which arguments: the whole list, as data. What has
// no row ends the process, or is refused (kExecDriver; base/jail/jail.h). docs/security.md shows the same list, and a
// test holds the two together.
#pragma once

#include <cstdint>
#include <span>

namespace vgpud {

// Where an executor may map memory of its guest, and nothing else may be: so that a filter, which sees only numbers,
// can tell that memory from the executor's own.
inline constexpr uint64_t kGuestWindowBegin = uint64_t{0x2000} << 32;
inline constexpr uint64_t kGuestWindowEnd = uint64_t{0x3000} << 32;
// Its last page, where nothing is ever mapped: the watcher answers that it has been unmapped, and so knows that the
// call before it is over.
inline constexpr uint64_t kGuestFence = kGuestWindowEnd - 4096;
// The descriptor through which it is mapped; below are the executor's own, and only those can be read and written.
inline constexpr int kGuestFileNumber = 64;
// How many files vgpud-vf and vgpud-exec have open at most; the latter beside its guest's.
inline constexpr uint64_t kMostServerFiles = 8192, kMostExecutorFiles = 128;

enum class JailKind {
  kVf,
  kExec,         // its one thread that maps guest memory: it asks for that, and starts no other thread
  kExecWorkers,  // all other threads of an executor: they start more of their kind, and map nothing of the guest's
  kKeep,         // vgpud-keep: faces no guest, and holds everybody's descriptors
  kExecDriver,   // all threads of an executor that has loaded a GPU's driver, the driver's own among them
};

struct ArgumentRule {
  enum class Test : uint8_t {
    kAny,      // no condition
    kEqual,    // == value
    kNot,      // != value
    kMasked,   // (argument & mask) == value
    kAtLeast,  // >= value
    kBelow,    // < value
    kOwnPid,   // == getpid()
  };
  uint8_t index = 0;
  Test test = Test::kAny;
  uint64_t value = 0;
  uint64_t mask = 0;
};

struct SyscallRule {
  enum class Answer : uint8_t {
    kAllow,
    kRefuse,  // `error`, and the process goes on: what a C library tries by itself and can do without
    kAsk,     // the watcher decides (base/jail/syscall_watch.h); without one it is allowed
    kKill,    // the process ends: no driver makes this call (kExecDriver)
  };
  const char* name;
  Answer answer = Answer::kAllow;
  int error = 0;
  ArgumentRule arguments[3] = {};
};

// Several rows of one name: any of them may fit. kExecDriver: where it
// has rows of a name, RulesForBoth's of that name do not count.
std::span<const SyscallRule> RulesForBoth();
std::span<const SyscallRule> RulesFor(JailKind kind);
// Of an executor whose GPU is a VF of another vgpud (docs/cuda-backend.md), beside those of its kinds.
std::span<const SyscallRule> RulesForNested();
// The error of a call without a row; 0: it ends the process.
int ErrorOtherwise(JailKind kind);
const char* NameOf(JailKind kind);

}  // namespace vgpud
