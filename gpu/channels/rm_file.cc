// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/rm_file.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace vgpud::rm {

Answer RmFile::Control(uint32_t client, uint32_t object, Command command, void* params, uint32_t bytes) const {
  RmControl control{client, object,    static_cast<uint32_t>(command), 0, reinterpret_cast<uint64_t>(params),
                    bytes,  UINT32_MAX};
  const uint64_t begun = MonotonicNs();
  const int error = Ioctl(kControlRequest, &control) == 0 ? 0 : errno;
  return {error, control.status, MonotonicNs() - begun};
}

Result<UniqueFd> TakeFileOf(int pidfd, int fd) {
  const long taken = ::syscall(SYS_pidfd_getfd, pidfd, fd, 0);
  if (taken >= 0) return UniqueFd{static_cast<int>(taken)};
  const int error = errno;
  return Fail(static_cast<std::errc>(error),
              fmt::format("the control file of the executor can't be taken (pidfd_getfd: {}): vgpud needs the right to "
                          "trace its executors",
                          std::strerror(error)));
}

int OwnRmFile::Ioctl(unsigned long request, void* argument) const {
  if (!VGPUD_RM_CONTROLS) {
    errno = ENOTTY;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_ioctl, fd_.get(), request, argument));
}

}  // namespace vgpud::rm
