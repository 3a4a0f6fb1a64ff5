// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/files/caller.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/fd.h"
#include "tests/first_contact/kernel_side/abi/requests.h"

namespace vgpud::kernel_side {

bool Caller::Read(uint64_t at, void* to, size_t bytes) const {
  const iovec here{to, bytes}, there{reinterpret_cast<void*>(at), bytes};
  return bytes == 0 || ::process_vm_readv(thread_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool Caller::Write(uint64_t at, const void* from, size_t bytes) const {
  const iovec here{const_cast<void*>(from), bytes}, there{reinterpret_cast<void*>(at), bytes};
  return bytes == 0 || ::process_vm_writev(thread_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

pid_t Caller::process() const {
  std::ifstream status(fmt::format("/proc/{}/status", thread_));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Tgid:")) return static_cast<pid_t>(std::strtol(line.c_str() + 5, nullptr, 10));
  return -1;
}

std::optional<uint64_t> Caller::FileOf(int fd) const {
  const UniqueFd process_file{static_cast<int>(::syscall(SYS_pidfd_open, process(), 0))};
  const UniqueFd file{static_cast<int>(::syscall(SYS_pidfd_getfd, process_file.get(), fd, 0))};
  uint64_t number = 0;
  if (!file || ::ioctl(file.get(), KERNEL_SIDE_WHICH_FILE, &number) != 0) return std::nullopt;
  return number;
}

}  // namespace vgpud::kernel_side
