// Which guest memory one watched executor may map and holds: vgpud-vf decides each of its mmap and munmap calls in the
// guest window (base/jail/rules.h). An executor that somebody else has taken over can so reach the pieces that were
// announced to it, and not the rest of the files they are in, nor keep one that it has been told to give up.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "base/jail/syscall_watch.h"
#include "vfio/dma_table.h"

namespace vgpud {

class ExecutorMemory {
 public:
  // The next pieces that it will map, in order.
  void Expect(uint32_t area, const FilePiece& piece);
  // What is still to come of that area is not to be mapped any more.
  void Revoke(uint32_t area);
  // The answer to a system call of the executor. kLeave: it has no business making this one.
  [[nodiscard]] SyscallWatch::Verdict Judge(const SyscallWatch::Call& call);
  // That answer was not delivered, so the call has not happened.
  void Undo();
  // Is a part of it mapped?
  bool Holds(uint32_t area) const;

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
  SyscallWatch::Verdict JudgeMap(const uint64_t (&arguments)[6]);
  SyscallWatch::Verdict JudgeUnmap(uint64_t begin, uint64_t bytes);

  std::deque<Expected> expected_;
  std::map<uint64_t, Mapped> mapped_;  // by first address; none overlap
  SharedFd answered_;                  // the file of the last verdict, until it has been carried out
  std::function<void()> undo_;         // of the last verdict; none when it has changed nothing
};

}  // namespace vgpud
