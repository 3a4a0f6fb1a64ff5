// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/printed.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace vgpud::driver {
namespace {

constexpr size_t kPiece = 16 << 10;
constexpr size_t kMostKept = 64 << 20;

}  // namespace

Result<void> Printed::Begin() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return FailErrno("socket for what kernels print");
  ours_ = UniqueFd{ends[0]};
  const UniqueFd theirs{ends[1]};
  if (::dup2(theirs.get(), STDOUT_FILENO) < 0) return FailErrno("standard output");
  return {};
}

// Read and kept in one go: after it, all that was written before is there.
void Printed::Collect() {
  std::fflush(stdout);
  const std::lock_guard lock(mutex_);
  std::array<std::byte, kPiece> piece;
  for (ssize_t n; (n = ::recv(ours_.get(), piece.data(), piece.size(), MSG_DONTWAIT)) > 0;)
    text_.insert(text_.end(), piece.begin(), piece.begin() + n);
  if (text_.size() > capacity_)
    text_.erase(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(text_.size() - capacity_));
}

void Printed::Drain() {
  for (;;) {
    pollfd readable{ours_.get(), POLLIN, 0};
    ::poll(&readable, 1, -1);
    Collect();
  }
}

void Printed::SetCapacity(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = static_cast<size_t>(std::min<uint64_t>(bytes, kMostKept));
}

size_t Printed::bytes() const {
  const std::lock_guard lock(mutex_);
  return text_.size();
}

size_t Printed::Take(std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  const size_t n = std::min(out.size(), text_.size());
  std::copy_n(text_.begin(), n, out.begin());
  text_.erase(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

void Printed::Clear() {
  const std::lock_guard lock(mutex_);
  text_.clear();
}

}  // namespace vgpud::driver
