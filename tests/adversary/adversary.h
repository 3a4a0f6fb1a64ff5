// SPDX-License-Identifier: Apache-2.0
// What the programs of tests/adversary share: they have entered the jail of the program whose place they take, and
// then attack. What each call said goes to stderr, which vgpud puts into its log.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "base/exec_link.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/slice_memory.h"

namespace vgpud::adversary {

// Which attack, and the process id of vgpud: from the file "target" in the directory VGPUD_LIBEXEC, since a process in
// its own namespaces can't know.
struct Target {
  std::string attack;
  pid_t daemon = 0;
};
Target ReadTarget();

// One line of the log.
void Say(std::string_view text);
// "attack: CALL: refused with EPERM", or "ALLOWED" when `result` is not negative. Uses errno.
void Report(std::string_view call, long result);
void Nap(long milliseconds);
// Writes lines to stderr for two seconds as fast as it can.
enum class Lines { kAlike, kDifferent };
void FloodLog(Lines lines);
// The value of "--name value" or "--name=value"; empty when there is none. The arguments stay as they are.
std::string_view OptionOf(int argc, char** argv, std::string_view name);
// Waits for the end of this process.
[[noreturn]] void Idle();
[[noreturn]] void RunReal(const char* variable, char** arguments);

// The place of an executor.
struct Post {
  pid_t daemon = 0;
  int link = exec_link::kExecLinkFd;
  exec_link::Attach attach;
  SliceView slices;
  UniqueFd kick, call;

  ExecSlot& slot() const { return slices.slot_page().slots[attach.channel]; }
  void Enter(ExecState state) const;
  // Says that it is ready and returns when the VF has the GPU: kRunning.
  void TakeTurn() const;
  // The next piece of guest memory that vgpud-vf announces.
  exec_link::Piece NextPiece() const;
};

template <class Place>
struct Attack {
  const char* name;
  const char* about;
  void (*run)(Place&);
  bool maps = false;  // by the thread of an executor that may map guest memory; else by one of the others
};
using ExecAttack = Attack<Post>;
std::span<const ExecAttack> CallAttacks();   // a system call that no executor has to make
std::span<const ExecAttack> WorldAttacks();  // the slice pages, the link, guest memory, computing time

}  // namespace vgpud::adversary
