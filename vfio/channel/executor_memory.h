// SPDX-License-Identifier: Apache-2.0
// Which guest memory one watched executor may map and holds: vgpud-vf decides each of its mmap and munmap calls in the
// guest window (base/jail/rules.h). An executor that somebody else has taken over can so reach the pieces that were
// announced to it, and not the rest of the files they are in, nor keep one that it has been told to give up.
//
// An answer is not yet a call: the thread that asked may run much later. Only one thread of an executor can ask
// (JailKind::kExec), so a call is over when the next one is asked, and that is when it is written down here; until then
// memory counts as held. Before the executor says that an area is let go it asks for kGuestFence to be unmapped, where
// never anything is.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "base/jail/syscall_watch.h"
#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

class ExecutorMemory {
 public:
  // The next pieces that it will map, in order.
  void Expect(uint32_t area, const FilePiece& piece);
  // What is still to come of that area is not to be mapped any more.
  void Revoke(uint32_t area);
  // It says that it does not hold that area: false when it does, or may still. What was to come of it does not come.
  [[nodiscard]] bool Forget(uint32_t area);
  // The answer to a system call of the executor. kLeave: it has no business making this one.
  [[nodiscard]] SyscallWatch::Verdict Judge(const SyscallWatch::Call& call);
  // That answer was not delivered, so the call has not happened; it may come once more.
  void Undelivered();
  // Is a part of it mapped, or may be in a moment?
  bool Holds(uint32_t area) const;
  // Pieces that are still to come.
  size_t expected() const { return expected_.size(); }

 private:
  struct Expected {
    uint32_t area;
    FilePiece piece;
    bool revoked = false;
  };
  struct Mapped {
    uint64_t end;
    uint32_t area;
  };
  // A call that was agreed to, until the next one is asked.
  struct InFlight {
    bool maps;  // the first of expected_
    uint64_t begin;
    uint64_t end;
    bool again = false;  // asked twice
  };
  void Settle();
  void EraseExpected(uint32_t area);
  SyscallWatch::Verdict JudgeMap(const uint64_t (&arguments)[6]);
  SyscallWatch::Verdict JudgeUnmap(uint64_t begin, uint64_t bytes);

  std::deque<Expected> expected_;
  std::map<uint64_t, Mapped> mapped_;  // by first address; none overlap
  std::optional<InFlight> in_flight_;
  std::optional<Expected> refused_;  // by the last verdict
};

}  // namespace vgpud::vfio
