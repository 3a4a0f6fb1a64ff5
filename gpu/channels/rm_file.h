// SPDX-License-Identifier: Apache-2.0
// An open file of the driver's control device. The manager takes a handle only through the open file by which it was
// made, whoever asks: not through another one of the same device, and not by name of /proc (docs/cuda-channels.md).
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "gpu/channels/rm_abi.h"
#include "gpu/channels/rm_refusal.h"

namespace vgpud::rm {

class RmFile {
 public:
  virtual ~RmFile() = default;
  // As ioctl(2): 0, or -1 and errno.
  virtual int Ioctl(unsigned long request, void* argument) const = 0;

  // One control of `object`. Nothing that changes `params` behind our back matters: what it holds then is not used.
  Answer Control(uint32_t client, uint32_t object, Command command, void* params, uint32_t bytes) const;
};

// The file that another process has as `fd` of its own: the same open file, so that its handles are valid. Needs the
// right to trace that process, which vgpud has over its executors.
[[nodiscard]] Result<UniqueFd> TakeFileOf(int pidfd, int fd);

// A file of this process's. Closes it in the end: as long as anybody has the file, what belongs to it lives, after the
// death of the process that opened it, too.
class OwnRmFile final : public RmFile {
 public:
  explicit OwnRmFile(UniqueFd fd) : fd_(std::move(fd)) {}
  int Ioctl(unsigned long request, void* argument) const override;

 private:
  UniqueFd fd_;
};

}  // namespace vgpud::rm
