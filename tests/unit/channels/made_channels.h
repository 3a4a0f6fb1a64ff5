// SPDX-License-Identifier: Apache-2.0
// The channels of a made-up driver: objects that it makes on the model's control device (rm_server.cc) as a driver
// makes its own, by ioctl of the process that it is in.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "gpu/channels/rm_abi.h"
#include "tests/unit/channels/rm_questions.h"

namespace rm_model {

class MadeChannels {
 public:
  // On the control device `path`, once. Nothing where there is none.
  // `hidden`: past everybody who stands in front of ioctl.
  void Make(const std::string& path, bool hidden = false) {
    if (fd_ >= 0) return;
    hidden_ = hidden;
    fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) return;
    client_ = Alloc(0, vgpud::rm::kClientClass);
    const uint32_t device = Alloc(client_, vgpud::rm::kDeviceClass);
    Alloc(device, vgpud::rm::kSubdeviceClass);
    const uint32_t group = Alloc(device, vgpud::rm::kGroupClass);
    for (int n = 0; n < kChannels; ++n) {
      const uint32_t channel = Alloc(group, kChannelClass);
      if (n == 0) Alloc(channel_ = channel, kComputeClass);
      Told told{client_, channel, 0, 0};
      ioctl(fd_, kBindRequest, &told);
    }
  }
  // Would the GPU run the work of the one that computes?
  bool Runs() const {
    Told told{client_, channel_, 0, 0};
    return fd_ >= 0 && ioctl(fd_, kRunsRequest, &told) == 0 && told.runs != 0;
  }

 private:
  uint32_t Alloc(uint32_t parent, uint32_t kind) const {
    vgpud::rm::RmAlloc made{client_, parent, 0, kind, 0, 0, 0, 0, UINT32_MAX, 0};
    const long done = hidden_ ? syscall(SYS_ioctl, fd_, vgpud::rm::kAllocRequest, &made)
                              : ioctl(fd_, vgpud::rm::kAllocRequest, &made);
    return done == 0 && made.status == 0 ? made.object : 0;
  }

  static constexpr int kChannels = 8;
  static constexpr uint32_t kChannelClass = 0xc86f, kComputeClass = 0xcbc0;
  bool hidden_ = false;
  int fd_ = -1;
  uint32_t client_ = 0, channel_ = 0;
};

}  // namespace rm_model
