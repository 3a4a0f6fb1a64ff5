// SPDX-License-Identifier: Apache-2.0
// What the resource manager says when it does not do something: in words, and what is to be done then.
#pragma once

#include <cstdint>
#include <string>

namespace vgpud::rm {

// What a call came back with: ioctl's own error, and the manager's status where it has written one.
struct Answer {
  int error = 0;  // errno; 0: the ioctl itself went through
  uint32_t status = 0;
  uint64_t took_ns = 0;
  bool ok() const { return error == 0 && status == 0; }
};

enum class Then {
  kNothing,   // it is done
  kRetry,     // the same once more
  kOtherWay,  // this driver does not do it: the next way to stop channels
  kLook,      // what we know of the objects is old: read it again
  kKill,      // it can't be stopped: the last rung
  kLost,      // the GPU is lost to everybody
};

Then WhatThen(const Answer& answer);
// "INVALID_CLIENT (0x23): ... ; ...": the name, what it means here and what helps. "ok" if it is done.
std::string Words(const Answer& answer);

}  // namespace vgpud::rm
