// SPDX-License-Identifier: Apache-2.0
// Guest memory as the executor sees it: areas that vgpud-vf hands over as pieces of files (base/exec_link.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/exec_link.h"
#include "base/foreign_fd.h"
#include "base/mapping.h"
#include "base/result.h"
#include "gpu/exec/memory/guest_window.h"
#include "gpu/exec/memory/lock_ranks.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

// Who is inside of an area beside the steps of kernels: jobs of other threads. They hold it together with the area, so
// it outlives both. Thread-safe.
class AreaUsers {
 public:
  // Runs `work`, which may touch the area, and returns true. False: the area goes or has gone, nothing was run.
  bool While(const std::function<void()>& work) {
    MutexLock lock(inside_);
    if (gone_) return false;
    work();
    return true;
  }
  // Nobody comes in any more. Returns when nobody is inside.
  void Leave() {
    gone_ = true;
    MutexLock lock(inside_);
  }
  bool gone() const { return gone_; }

 private:
  Mutex inside_{lock_rank::kInside};
  std::atomic<bool> gone_{false};
};

// One area: the channel area (id 0) or a pinned buffer, its pieces mapped one behind the other. Used by one thread at a
// time, but for what runs in users(); whoever drops it makes sure that no step of a kernel is inside.
class GuestArea {
 public:
  // Reserves address space for the area that `first` announces. Errors: sizes that are zero, no page multiples or above
  // 64 GiB, more than VGPU_MAX_SEGMENTS pieces, no address space left. `window` outlives this. `keeps_file`: that of an
  // area in one piece stays open.
  [[nodiscard]] static Result<std::unique_ptr<GuestArea>> Start(GuestWindow& window, const exec_link::Area& first,
                                                                bool keeps_file = false);
  ~GuestArea();
  // Maps the pieces of one message, from `fds` or, where there are none, as the watcher of this process lets us
  // (kGuestFileNumber). Errors: a message that does not continue this area, a piece outside of it, and a file that is
  // shorter than the piece says (touching it would be SIGBUS). A piece that the watcher has withdrawn is no error: the
  // area is dropped, and kUnmapArea is on its way. Nor is a piece that this process has no memory
  // to map: all pieces are tried, as whoever watches expects, and the area has failed.
  [[nodiscard]] Result<void> Add(const exec_link::Area& message, std::span<const exec_link::Piece> pieces,
                                 std::span<ForeignFd> fds);
  // Lets go of the guest's memory when none of its users is inside. Nothing may touch the area afterwards.
  void Drop();
  const std::shared_ptr<AreaUsers>& users() const { return users_; }

  bool complete() const { return pieces_ == total_pieces_ && !dropped_ && !failed_; }
  bool failed() const { return failed_; }
  // Every piece may be written.
  bool writable() const { return writable_; }
  std::span<std::byte> bytes() const { return mapping_.bytes(); }
  // That it shows, where it is kept.
  MemoryFile file() const { return {file_.get(), file_offset_}; }

 private:
  [[nodiscard]] Result<void> Map(const exec_link::Piece& piece, std::span<const ForeignFd> fds);

  GuestWindow* window_ = nullptr;
  std::shared_ptr<AreaUsers> users_ = std::make_shared<AreaUsers>();
  Mapping mapping_;
  uint32_t total_pieces_ = 0;
  uint32_t pieces_ = 0;
  uint64_t mapped_ = 0;
  bool writable_ = true;
  bool dropped_ = false;
  bool failed_ = false;
  bool keeps_file_ = false;
  ForeignFd file_;
  uint64_t file_offset_ = 0;
};

}  // namespace vgpud::exec
