// SPDX-License-Identifier: Apache-2.0
#include "vfio/memory/client_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>

namespace vgpud::vfio {

Result<void> CheckClientFile(const ForeignFd& file, uint64_t offset, uint64_t bytes, bool write, const char* what) {
  // Only memory has seals. Any other file may belong to a file system that answers when it likes (FUSE, NFS), and every
  // call on it, even fstat, could wait for that.
  struct stat st {};
  if (::fcntl(file.get(), F_GET_SEALS) < 0 || ::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return Fail(std::errc::invalid_argument,
                fmt::format("{}: the fd is no memory; a memfd, or a regular file of tmpfs or hugetlbfs, is needed "
                            "(QEMU: -object memory-backend-memfd, or memory-backend-file with a mem-path under "
                            "/dev/shm)",
                            what));
  const auto size = static_cast<uint64_t>(std::max<off_t>(st.st_size, 0));
  if (offset > size || bytes > size - offset)
    return Fail(std::errc::invalid_argument,
                fmt::format("{}: {:#x} bytes from {:#x} of a file of {:#x}", what, bytes, offset, size));
  const int mode = ::fcntl(file.get(), F_GETFL) & O_ACCMODE;
  if (mode == O_WRONLY || (write && mode != O_RDWR))
    return Fail(std::errc::permission_denied, fmt::format("{}: the fd is not open for what the flags promise", what));
  return {};
}

uint64_t PageOf(int file) {
  constexpr uint64_t kPage = 4096;
  struct statfs st {};
  return ::fstatfs(file, &st) == 0 && st.f_type == HUGETLBFS_MAGIC ? static_cast<uint64_t>(st.f_bsize) : kPage;
}

}  // namespace vgpud::vfio
