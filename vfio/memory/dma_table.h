// SPDX-License-Identifier: Apache-2.0
// The guest memory that the client has mapped for us (DMA_MAP). Nothing of it is ever mapped into this process: it is
// read and written with pread() and pwrite(), so a client that truncates a file gets an error and not our SIGBUS.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/foreign_fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace vgpud::vfio {

using SharedFd = std::shared_ptr<const UniqueFd>;

// As many as QEMU makes. A guest with an IOMMU has one for each page that is not part of a large one.
inline constexpr size_t kMaxDmaRegions = 65535;
inline constexpr size_t kMaxDmaFiles = 256;  // distinct files behind them

struct IovaRange {
  Iova start{};
  uint64_t bytes = 0;

  uint64_t first() const { return Raw(start); }
  uint64_t last() const { return Raw(start) + (bytes - 1); }  // of a range with bytes > 0
  bool Overlaps(const IovaRange& other) const {
    return bytes != 0 && other.bytes != 0 && first() <= other.last() && other.first() <= last();
  }
};

// Guest memory as a piece of a file.
struct FilePiece {
  SharedFd file;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool writable = false;
  IovaRange guest;       // where the guest sees it; empty for memory that is not the guest's
  uint64_t page = 4096;  // of the file: it is mapped in such units, whatever part of one is asked for
};

// Memory that an executor maps: the channel area (id 0) or a buffer.
struct Area {
  std::vector<FilePiece> pieces;
  uint64_t bytes = 0;

  bool Overlaps(const IovaRange& range) const;
};

class DmaTable {
 public:
  struct Access {
    bool read = false;
    bool write = false;
  };
  // Adds a region. Without a file it is known but not reachable (device memory, ROM, RAM that is not shared).
  // Moves `file` out when it keeps it; one of a file that it has already is closed.
  //   EINVAL  empty, wraps, not page aligned, no file of tmpfs or hugetlbfs, or [offset, +bytes) not inside the file
  //   EACCES  the file is not open for what `access` says     EEXIST  overlaps a region     ENOSPC  table full
  [[nodiscard]] Result<void> Map(IovaRange range, Access access, ForeignFd& file, uint64_t offset);
  // Checks that `range` is exactly one region, as it was mapped.
  //   EINVAL  empty, wraps, or only a part of what is mapped, or more   ENOENT  nothing of it is mapped
  [[nodiscard]] Result<void> CheckUnmap(IovaRange range) const;
  // Drops the region `range`, which CheckUnmap has found good.
  void Unmap(IovaRange range);
  void Clear();

  // The file pieces behind `range`, in order.
  //   EFAULT  a part is not mapped, or has no file (the text then names the fix), or is read-only and `write` is set
  [[nodiscard]] Result<std::vector<FilePiece>> Resolve(IovaRange range, bool write) const;
  // Copies guest memory. EFAULT as above, also when the file has become shorter.
  [[nodiscard]] Result<void> Read(Iova from, std::span<std::byte> out) const;
  [[nodiscard]] Result<void> Write(Iova to, std::span<const std::byte> in) const;

  size_t regions() const { return regions_.size(); }

 private:
  struct Region {
    IovaRange range;
    Access access;
    SharedFd file;
    uint64_t offset;
    uint64_t page;
  };
  struct FileId {
    dev_t device;
    ino_t inode;
    int access_mode;
    auto operator<=>(const FileId&) const = default;
  };
  [[nodiscard]] Result<SharedFd> CheckFile(ForeignFd& file, uint64_t offset, uint64_t bytes, Access access);

  std::map<uint64_t, Region> regions_;  // by first address
  std::map<FileId, std::weak_ptr<const UniqueFd>> files_;
};

}  // namespace vgpud::vfio
