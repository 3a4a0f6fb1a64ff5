// SPDX-License-Identifier: Apache-2.0
// The memory of VFs while they are in use: one change of several, all of it or nothing. A kill of vgpud between any two
// steps leaves what a restart repairs, as the definition on the disk is never less than what programs have been
// granted:
//
//   Shrink   vgpud-vf of each VF that gets less of something: refused where more is in use
//   Commit   vgpud's own books and the control groups of those that get more; the caller then writes the definitions
//   Finish   vgpud-vf of each VF that gets more, and the control groups of those that get less
//   Undo     instead of Commit or Finish: all as it was
//
// Main thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "vgpud/registry/reply.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {

class MemoryChange : public std::enable_shared_from_this<MemoryChange> {
 public:
  struct Item {
    std::weak_ptr<Vf> vf;  // its name may be another VF's when the disk has answered
    VfMemory was;
    VfMemory is;
  };
  // Takes the VFs for itself until it is gone: they are in `busy`, which outlives it. An error: another change has one.
  static ApiResult<std::shared_ptr<MemoryChange>> Begin(std::set<VfId>& busy, std::vector<Item> items);
  ~MemoryChange();
  MemoryChange(const MemoryChange&) = delete;
  MemoryChange& operator=(const MemoryChange&) = delete;

  using Done = std::function<void(const ApiResult<void>&)>;
  // After an error everything is as it was.
  void Shrink(Done done);
  void Commit();
  // An error: a VF has ended meanwhile; the others have their memory.
  void Finish(Done done);
  void Undo(std::function<void()> done);

 private:
  explicit MemoryChange(std::set<VfId>& busy) : busy_(busy) {}
  // What a VF is to have, of what it was and what it is to be.
  using Choose = VfMemory (*)(const Item&);
  // Tells those vgpud-vf to which `from` and `to` are not the same; `done` with the first error.
  void Tell(Choose from, Choose to, Done done);

  std::set<VfId>& busy_;
  std::vector<VfId> own_;  // of those in busy_
  std::vector<Item> items_;
};

}  // namespace vgpud::daemon
