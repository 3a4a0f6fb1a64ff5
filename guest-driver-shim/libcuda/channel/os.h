// SPDX-License-Identifier: Apache-2.0
// Small owners of what the kernel hands out. (This library may use nothing of base/: it lives in guests.)
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

namespace vgpud::cuda {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A descriptor that the program may close, or replace, behind the back of this library.
class KnownFd {
 public:
  KnownFd() = default;
  explicit KnownFd(OwnedFd fd) : fd_(std::move(fd)) { Look(&device_, &inode_); }
  int get() const { return fd_.get(); }
  // Is it still what it was? Async-signal-safe.
  bool IsSame() const {
    dev_t device = 0;
    ino_t inode = 0;
    return Look(&device, &inode) && device == device_ && inode == inode_;
  }
  // For a forked child, which must not keep it open. Async-signal-safe.
  void CloseInChild() const {
    if (IsSame()) close(fd_.get());
  }

 private:
  bool Look(dev_t* device, ino_t* inode) const {
    struct stat about;
    if (fstat(fd_.get(), &about) != 0) return false;
    *device = about.st_dev;
    *inode = about.st_ino;
    return true;
  }
  OwnedFd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Shared, read-write, and not inherited by forked children. nullptr on failure (errno).
inline void* MapShared(int fd, size_t bytes, off_t offset) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_DONTFORK);
  return at;
}

}  // namespace vgpud::cuda
