/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded in front of a program (LD_PRELOAD): files of a FUSE file system are no devices, and can't choose what an mmap
 * maps. So stat() says that NVIDIA's device files are devices, and mmap() asks the file first where its pages are. */
#undef _FILE_OFFSET_BITS /* it gives stat and mmap other names, which are here by hand */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/first_contact/kernel_side/abi/requests.h"

static const off_t kFileBytes = (off_t)1 << 62; /* of ours, and of no other file */

static const struct {
  const char* name;
  unsigned major, minor;
} kFiles[] = {{"nvidiactl", 195, 255}, {"nvidia-uvm", 511, 0}, {"nvidia-uvm-tools", 511, 1}};

static int find(const char* path, unsigned* major, unsigned* minor) {
  static const char kFolder[] = "/dev/";
  if (path == NULL || strncmp(path, kFolder, sizeof kFolder - 1) != 0) return 0;
  const char* name = path + sizeof kFolder - 1;
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i)
    if (strcmp(name, kFiles[i].name) == 0) {
      *major = kFiles[i].major;
      *minor = kFiles[i].minor;
      return 1;
    }
  *major = 195;
  char end;
  return sscanf(name, "nvidia%u%c", minor, &end) == 1;
}

static int answer(const char* path, struct stat* status) {
  const long result = syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
  unsigned major, minor;
  if (result == 0 && status->st_size == kFileBytes && find(path, &major, &minor)) {
    status->st_mode = S_IFCHR | 0666;
    status->st_rdev = makedev(major, minor);
  }
  return (int)result;
}

/* By all names that the C library has, or had, for it. */
int stat(const char* path, struct stat* status) { return answer(path, status); }
int __xstat(int version, const char* path, struct stat* status) {
  (void)version;
  return answer(path, status);
}
int large_stat(const char* path, struct stat* status) __asm__("stat64");
int large_stat(const char* path, struct stat* status) { return answer(path, status); }
int __xstat64(int version, const char* path, struct stat* status) { return __xstat(version, path, status); }

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  struct stat status;
  if (fd >= 0 && syscall(SYS_fstat, fd, &status) == 0 && status.st_size == kFileBytes) {
    struct kernel_side_map map = {(uint64_t)at, bytes, 0};
    if (ioctl(fd, KERNEL_SIDE_MAP, &map) != 0) return MAP_FAILED;
    offset = (off_t)map.offset;
  }
  return (void*)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}
void* large_mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) __asm__("mmap64");
void* large_mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mmap(at, bytes, protection, flags, fd, offset);
}
